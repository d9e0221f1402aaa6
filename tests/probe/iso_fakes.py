"""A runner without torch whose ops do what their names say; starts in a tenth of a second."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from scanner.backends.drill_deaths import DEATHS
from scanner.backends.interface import DeviceFacts, Unusable
from scanner.probe.limits import Launch, Limits
from scanner.probe.observer import Observer, Progress
from scanner.probe.protocol import Outcome
from scanner.probe.runner import Ran
from scanner.probe.supervisor import probe
from scanner.records import OpCall

RUNNER = "tests.probe.iso_fakes:FakeRunner"
FACTS = DeviceFacts(backend="fake", name="Fake 1", framework="fake 1.0", os="fake os")
QUICK = Limits(case_s=1.0, first_s=1.0, start_s=20.0, linger_s=0.06)


def call(op: str, number: int = 0) -> OpCall:
    return OpCall(op=op, phase="forward", inputs=(), attributes={"number": number})


def fine(count: int, start: int = 0) -> list[OpCall]:
    return [call("fake::fine", number) for number in range(start, start + count)]


class FakeRunner:
    """`options`: `log`, a file that gets a line for each run; `refuse`, why there is no device."""

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self.options = options
        self.facts = FACTS
        self.sick = False
        self.ran: list[str] = []
        self.ballast = b""
        if (births := options.get("births")) and self.is_young(Path(births)):
            os.kill(os.getpid(), signal.SIGKILL)
        if options.get("stillborn"):
            sys.stderr.write("fake: no such framework\n")
            raise SystemExit(9)

    @staticmethod
    def is_young(births: Path) -> bool:
        """Whether fewer than six workers have been started."""
        with births.open("a") as file:
            file.write("x")
        return 1 < births.stat().st_size < 6

    def check(self) -> Unusable | None:
        if self.sick:
            return Unusable(reason="context lost", remedy="")
        reason = self.options.get("refuse")
        return Unusable(reason=reason, remedy="Buy one.") if reason else None

    def fallback_cost(self, call: OpCall) -> dict[str, Any]:
        return {}

    def settle(self) -> None: ...

    def held(self) -> int:
        return len(self.ballast)

    def trim(self) -> None: ...

    def run(self, call: OpCall) -> Ran:
        name = call.op.removeprefix("fake::")
        if log := self.options.get("log"):
            with Path(log).open("a") as file:
                file.write(f"{os.getpid()} {name} {call.attributes['number']}\n")
        time.sleep(self.options.get("pause", 0.0))
        ran = self.verdict(name, call)
        self.ran.append(name)
        return ran

    def verdict(self, name: str, call: OpCall) -> Ran:
        if name in DEATHS:
            DEATHS[name](call.op)
        elif hasattr(self, name):
            getattr(self, name)()
        if self.sick:
            return Ran(status="crash", reason="raised")
        if name == "unencodable":
            return Ran(status="native", reason="", detail={"what": object()})
        if name == "environ":
            variables = ("PYTORCH_ENABLE_MPS_FALLBACK", "OMP_NUM_THREADS")
            told = {each: os.environ.get(each, "") for each in variables}
            return Ran(status="native", reason="", detail=told)
        return Ran(status="native", reason="", detail={"number": call.attributes["number"]})

    def fine(self) -> None: ...

    def spoilt_by_poison(self) -> None:
        """Dies only where `poison` has run before."""
        if "poison" in self.ran:
            os.abort()

    def once(self) -> None:
        """Dies the first time in the scan, never again."""
        self._once(os.abort)

    def once_killed(self) -> None:
        self._once(lambda: os.kill(os.getpid(), signal.SIGKILL))

    def once_hangs(self) -> None:
        self._once(lambda: time.sleep(60))

    def _once(self, die: Any) -> None:
        mark = Path(self.options["mark"])
        if not mark.exists():
            mark.touch()
            die()

    def killed(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def slow(self) -> None:
        """Takes longer than a first look allows, less than a second."""
        time.sleep(2.5)

    def breaks(self) -> None:
        raise ValueError("no such operand\nmore")

    def exhausts(self) -> None:
        raise MemoryError("wanted too much")

    def garbles(self) -> None:
        """The result is lost on its way, each time."""
        worker = sys.modules["__main__"]
        pipe, send = worker._Pipe, worker._Pipe.send

        def lose_one(self: Any, *frames: bytes) -> None:
            kept = [frame for frame in frames if b'"type":"result"' not in frame]
            if len(kept) < len(frames):
                pipe.send = send
            send(self, *kept)

        pipe.send = lose_one

    def garbles_once(self) -> None:
        self._once(self.garbles)

    def fails_its_worker(self) -> None:
        def fail(self: Any) -> None:
            raise ZeroDivisionError("a fault of opscan's own")

        sys.modules["__main__"]._Worker._flush = fail
        sys.modules["__main__"]._Worker._arm = fail

    def eats(self) -> None:
        bytearray(1 << 33)

    def talks_and_dies(self) -> None:
        os.write(2, "".join(f"line {number}\n" for number in range(100_000)).encode())
        os.abort()

    def dies_of_memory(self) -> None:
        sys.stderr.write("terminate called: std::bad_alloc\n")
        sys.stderr.flush()
        os.abort()

    def sickens(self) -> None:
        self.sick = True

    def grows(self) -> None:
        self.ballast = b"x" * 2_000_000

    def warns(self) -> None:
        warnings.warn("odd layout", stacklevel=1)
        warnings.warn("odd layout", stacklevel=1)

    def falls_back(self) -> None:
        warnings.warn(
            "The operator 'fake::falls_back' is not currently supported on the MPS backend and "
            "will fall back to run on the CPU.",
            stacklevel=1,
        )

    def falls_back_in_a_thread(self) -> None:
        os.write(
            2,
            b"[W MPSFallback.mm:13] Warning: The operator 'fake::inner' is not currently supported "
            b"on the MPS backend and will fall back to run on the CPU.\n",
        )

    def leaves_a_child(self) -> None:
        """A process that holds the pipes open outlives the worker."""
        for descriptor in range(3, 64):
            try:
                os.set_inheritable(descriptor, True)
            except OSError:
                continue
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        os.abort()

    def dies_at_leisure(self) -> None:
        """Dies 30 ms after the last configuration, when nothing is in flight."""
        threading.Timer(0.03, os.abort).start()


class Watcher(Observer):
    def __init__(self) -> None:
        self.notices: list[str] = []
        self.steps: list[Progress] = []
        self.reused = -1

    def ready(self, facts: DeviceFacts, total: int, reused: int) -> None:
        self.reused = reused

    def progress(self, progress: Progress) -> None:
        self.steps.append(progress)

    def notice(self, text: str) -> None:
        self.notices.append(text)


def outcomes(calls: list[OpCall], **options: Any) -> dict[str, Outcome]:
    """The last outcome of each op among `calls`, by op and number: `fine 3`."""
    from scanner.probe.plan import config_key

    options = {"limits": QUICK, "workers": 1, "options": {}, "launch": {}, **options}
    launch = Launch(workers=options.pop("workers"), runner=RUNNER, **options.pop("launch"))
    latest = {
        outcome.key: outcome
        for outcome in probe(calls, "cpu", options.pop("options"), launch=launch, **options)
    }
    return {
        f"{each.op.removeprefix('fake::')} {each.attributes['number']}": latest[config_key(each)]
        for each in calls
    }


class DyingDevice(FakeRunner):
    """Works until the first worker has died, and is refused to all later ones."""

    def check(self) -> Unusable | None:
        died = Path(self.options["log"] + ".died")
        return Unusable(reason="it went away", remedy="") if died.exists() else None

    def verdict(self, name: str, call: OpCall) -> Ran:
        if name == "abort":
            Path(self.options["log"] + ".died").touch()
        return super().verdict(name, call)


dying_device = DyingDevice


def among_others(*ops: str) -> list[OpCall]:
    return [*fine(4), *(call(f"fake::{op}") for op in ops), *fine(4, start=4)]


def others_are_fine(found: dict[str, Outcome], *ops: str) -> None:
    rest = {name: each for name, each in found.items() if name.split()[0] not in ops}
    assert len(rest) == 8
    for name, each in rest.items():
        assert (each.status, each.detail) == ("native", {"number": int(name.split()[1])})
