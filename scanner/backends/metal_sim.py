"""`metal-sim`: a release's own MPS code in an emulator, as a device of the probe.

Used in a worker process only: opening it loads unicorn, which is GPL-2.0.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from scanner.backends.interface import DeviceFacts, Inconclusive, Unusable
from scanner.backends.sim_calls import named, raised_error
from scanner.backends.sim_host_tensors import HostTensors
from scanner.backends.sim_spec import DEFAULT_CHIP, DEFAULT_MACOS, NAME, sim_target
from scanner.backends.sim_tensor import SimulatedTensor, dressed
from scanner.errors import OpscanError
from scanner.records import Target
from scanner.sim import host
from scanner.sim.assemble import open_release, simulator_digest
from scanner.sim.call import Call, SimTensor
from scanner.sim.machine.faults import Fault
from scanner.sim.shaders.functions.interface import Direction
from scanner.sim.values import DTYPES, from_torch

if TYPE_CHECKING:
    from scanner.sim.session import Session

__all__ = ["Simulator", "UploadError", "open_simulator"]


_WIDE = frozenset({torch.float64, torch.complex128})


class UploadError(TypeError):
    """A tensor that no GPU of Apple can hold, with the release's own text."""


def open_simulator(spec: str) -> Simulator:
    """The simulator of `metal-sim:torch==2.15.0,macos=26.2`.

    Raises `UsageError` for a spec that cannot be read; why a release cannot be opened is for
    `Simulator.check` to say.
    """
    target = sim_target(spec)
    macos = target.macos or DEFAULT_MACOS
    gpu = host.known_gpu(target.chip or DEFAULT_CHIP, target.ram)
    try:
        session = open_release(target.version, macos, gpu, fallback=target.fallback)
    except OpscanError as error:
        return Simulator(target, Unusable(reason=error.message, remedy=error.remedy))
    return Simulator(target, session)


class Simulator:
    """An imitated GPU under a release of torch.

    `seen` holds what the calls since the last `forget` did, the latest last.
    """

    def __init__(self, target: Target, session: Session | Unusable) -> None:
        self.target = target
        self._opened = session
        self._dressed: weakref.WeakValueDictionary[int, SimulatedTensor] = (
            weakref.WeakValueDictionary()
        )
        self.seen: list[tuple[str, Call]] = []

    @property
    def session(self) -> Session:
        """The running release."""
        if isinstance(self._opened, Unusable):
            raise Inconclusive(self._opened.reason)
        return self._opened

    @cached_property
    def facts(self) -> DeviceFacts:
        """What is imitated, and all that results depend on."""
        session = self.session
        major, minor = session.macos
        return DeviceFacts(
            backend=NAME,
            name=session.gpu.name,
            framework=f"torch {self.target.version}",
            os=f"macOS {major}.{minor} (imitated)",
            details={
                "simulator": simulator_digest(),
                "wheel": session.prepared.manifest.wheel_sha256,
                "reference": f"torch {torch.__version__}",
                "memory": str(session.gpu.memory),
                "fallback": str(self.target.fallback),
            },
        )

    def check(self) -> Unusable | None:
        """Whether it opened, and gives back what it was given."""
        if isinstance(self._opened, Unusable):
            return self._opened
        given = torch.arange(8.0)
        try:
            returned = self.download(self.upload(given))
        except Inconclusive as error:
            return self._broken(str(error))
        return None if torch.equal(returned, given) else self._broken("it returns other values")

    def lean(self, direction: Direction) -> None:
        """Sets where in their allowed error approximate functions of shaders end, from now on."""
        self.session.shaders.direction = direction

    def forget(self) -> None:
        """Starts a new record of calls."""
        self.seen.clear()

    def upload(self, tensor: Any) -> Any:
        """See `Device.upload`."""
        return self.upload_all([tensor])[0]

    def upload_all(self, tensors: list[Any]) -> list[Any]:
        """See `Device.upload_all`; the first tensor over a storage brings it, others alias it.

        Raises `UploadError` for a dtype that the release refuses on the device.
        """
        first: dict[int, SimTensor] = {}
        uploaded = []
        for tensor in tensors:
            _require_dense(tensor)
            key = tensor.untyped_storage()._cdata
            held = self._upload(tensor, first.get(key))
            first.setdefault(key, held)
            uploaded.append(self._dress(held))
        return uploaded

    def download(self, tensor: Any) -> Any:
        """See `Device.download`."""
        if not isinstance(tensor, SimulatedTensor):
            return tensor.detach().clone()
        try:
            return self.session.download(tensor.held).torch()
        except Fault as error:
            raise Inconclusive(error.reason) from error

    def call(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the overload through the release's own dispatcher.

        Raises what the release raises, with its text, and `Inconclusive` with the reason where
        the simulator cannot tell.
        """
        call = self.observe(op, args, kwargs)
        if call.outcome == "unknown":
            raise Inconclusive(call.message)
        if call.outcome == "raises":
            raise raised_error(call)
        return self.results(call)

    def observe(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """As `call`, but everything that was seen, whatever the outcome."""
        from scanner.sim.entry import ArgumentError  # it needs the emulator, which may be missing

        try:
            given = named(op, self.session.schema(op), args, kwargs)
            kept = HostTensors(self.session)
            bare = {name: _bare(value, kept) for name, value in given.items()}
            call = self.session.call(op, (), bare)
            if call.outcome not in {"raises", "unknown"}:
                kept.write_back()
        except (ArgumentError, Fault) as error:
            raise Inconclusive(str(error)) from error
        self.seen.append((op, call))
        for text in call.warnings:
            warnings.warn(text, UserWarning, stacklevel=2)
        return call

    def results(self, call: Call) -> Any:
        """What a call that was observed returned: tensors of this device, lists, numbers."""
        results = tuple(self._result(output) for output in call.outputs)
        return results[0] if len(results) == 1 else results or None

    def submit(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """As `call`: emulated code is always ready when it returns."""
        return self.call(op, args, kwargs)

    def synchronize(self) -> None:
        """Nothing is ever pending."""

    def timer(self) -> Callable[[Callable[[], Any]], float]:
        """Raises `Inconclusive`: how long an emulator takes says nothing about a GPU."""
        raise Inconclusive("the simulator says nothing about speed")

    def memory(self) -> Mapping[str, int]:
        """The emulator's memory is the process' own."""
        return {}

    def release(self) -> None:
        """Puts the process back to its snapshot; every tensor is lost."""
        self.session.restart()

    def _upload(self, tensor: torch.Tensor, alias: SimTensor | None) -> SimTensor:
        if tensor.dtype in _WIDE:
            self._require_wide(tensor)
        try:
            return self.session.upload(from_torch(tensor), alias=alias)
        except Fault as error:
            raise Inconclusive(error.reason) from error

    def _require_wide(self, tensor: torch.Tensor) -> None:
        """Has the release itself copy such a tensor, which it refuses: raises `UploadError`."""
        call = self.session.call("aten::_to_copy", (from_torch(tensor, "cpu"),), {"device": "mps"})
        if call.outcome == "raises":
            raise UploadError(call.message)

    def _result(self, output: Any) -> Any:
        if isinstance(output, list):
            return [self._result(item) for item in output]
        return self._dress(output) if isinstance(output, SimTensor) else output

    def _dress(self, held: SimTensor) -> SimulatedTensor:
        """The same object for the same tensor, so that an argument returned is recognised."""
        known = self._dressed.get(held.pointer)
        if known is None or known.held.epoch != held.epoch:
            known = dressed(held)
            self._dressed[held.pointer] = known
        known.held = held
        return known

    def _broken(self, what: str) -> Unusable:
        return Unusable(
            reason=f"the simulator of torch {self.target.version} does not work: {what}",
            remedy=f"Prepare it again: `opscan sim remove torch=={self.target.version}`, "
            f"then `opscan sim prepare torch=={self.target.version}`.",
        )


def _bare(value: Any, kept: HostTensors) -> Any:
    """What a session takes for an argument."""
    if isinstance(value, list | tuple):
        return [_bare(item, kept) for item in value]
    if isinstance(value, SimulatedTensor):
        return value.held
    if isinstance(value, torch.Tensor):
        _require_dense(value)
        return kept.take(value)
    return value


def _require_dense(tensor: torch.Tensor) -> None:
    """Raises `Inconclusive` for a tensor that cannot be taken into the simulator."""
    if tensor.layout != torch.strided:
        raise Inconclusive(f"the simulator takes no {str(tensor.layout)[6:]} tensors")
    name = str(tensor.dtype)[6:]
    if name not in DTYPES:
        raise Inconclusive(f"the simulator takes no {name} tensors")
