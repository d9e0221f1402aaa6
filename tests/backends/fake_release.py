"""A release that computes with the installed torch, behind the interface of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from scanner.backends.metal_sim import Simulator
from scanner.backends.overloads import overload
from scanner.records import Target
from scanner.sim import trace
from scanner.sim.call import Call, SimTensor
from scanner.sim.gpu import Gpu
from scanner.sim.machine.faults import Fault
from scanner.sim.values import Argument, HostTensor, from_torch

Answer = Callable[[], Call]


class FakeSession:
    """`answers` are calls that end otherwise than in a result; `lacks` are argument names."""

    macos = (15, 5)
    gpu = Gpu()
    prepared = SimpleNamespace(manifest=SimpleNamespace(wheel_sha256="abc"))

    def __init__(self, answers: Mapping[str, Call] | None = None, lacks: str = "") -> None:
        self.answers = dict(answers or {})
        self.lacks = lacks
        self.replaced: dict[str, str] = {}
        """Ops that compute what another one does."""
        self.shaders = SimpleNamespace(direction="nearest")
        self.astray: dict[str, dict[str, str]] = {}
        """Direction of approximate functions → as `replaced`, in that direction only."""
        self.respelt: dict[str, str] = {}
        """Names of arguments that this release has for those of the installed one."""
        self.given: dict[str, Any] = {}
        self.tensors: dict[int, torch.Tensor] = {}
        self.restarts = 0

    def schema(self, op: str) -> list[Argument] | None:
        if op == "aten::gone":
            return None
        arguments = overload(op)._schema.arguments
        return [
            Argument(self.respelt.get(a.name, a.name), str(a.type), False, False)
            for a in arguments
            if a.name != self.lacks
        ]

    def upload(self, source: HostTensor, alias: SimTensor | None = None) -> SimTensor:
        tensor = source.torch()
        if alias is not None:
            base = self.tensors[alias.pointer]
            tensor = torch.as_strided(base, source.shape, source.stride, source.offset)
        return self.held(tensor)

    def held(self, tensor: torch.Tensor) -> SimTensor:
        pointer = next((at for at, known in self.tensors.items() if known is tensor), 0)
        pointer = pointer or len(self.tensors) + 1
        self.tensors[pointer] = tensor
        host = from_torch(tensor)
        return SimTensor(pointer, host.dtype, host.shape, host.stride, host.offset, "mps", 0)

    def download(self, tensor: SimTensor) -> HostTensor:
        if tensor.pointer not in self.tensors:
            raise Fault("a tensor of an earlier start of the process is used")
        return from_torch(self.tensors[tensor.pointer])

    def restart(self) -> None:
        self.restarts += 1
        self.tensors.clear()

    def call(self, op: str, args: Any, given: Mapping[str, Any]) -> Call:
        self.given = dict(given)
        if op in self.answers:
            return self.answers[op]
        assert args == ()
        replaced = {**self.replaced, **self.astray.get(self.shaders.direction, {})}
        result = overload(replaced.get(op, op))(
            **{name: self.taken(value) for name, value in given.items()}
        )
        results = result if isinstance(result, tuple) else (result,)
        launch = trace.Launch(
            kernel=f"{op[6:]}_float", grid=(4, 1, 1), threadgroup=(4, 1, 1), mode="threads",
            bindings=(),
        )  # fmt: skip
        outputs = tuple(self.held(each) for each in results)
        return Call("native-shader", "native-shader", outputs=outputs, events=(launch,))

    def taken(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.taken(item) for item in value]
        if isinstance(value, SimTensor):
            return self.tensors[value.pointer]
        return value.torch() if isinstance(value, HostTensor) else value


def fake_simulator(session: FakeSession, target: Target | None = None) -> Simulator:
    """A simulator of torch 2.9.1 over a session."""
    chosen = target or Target(framework="torch", version="2.9.1")
    return Simulator(chosen, session)  # type: ignore[arg-type]  (duck-typed)
