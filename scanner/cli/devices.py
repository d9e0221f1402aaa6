"""Which device a scan runs ops on, and what is said while it does."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from scanner.backends.interface import DeviceFacts
from scanner.backends.open import check_device_spec
from scanner.backends.sim_spec import NAME as SIMULATOR
from scanner.backends.sim_spec import is_simulator, sim_target
from scanner.errors import UsageError
from scanner.host import Host
from scanner.probe.autocast import parse_dtypes
from scanner.probe.keeping import Keeping
from scanner.probe.observer import Observer, Progress
from scanner.probe.reproduce import claim_folder
from scanner.records import Target

__all__ = [
    "Messages",
    "batch_sizes",
    "choose_autocast",
    "choose_device",
    "choose_ulp",
    "choose_whole",
    "claim_repro",
    "require_device",
    "require_simulated",
    "simulated_target",
    "store_path",
]

_EVERY_S = 0.2
_LARGEST = 1 << 20


def choose_device(
    spec: str, host: Host, targets: Sequence[Target]
) -> tuple[str | None, str | None]:
    """The device to run on, and the id of the target that it is.

    `auto` is the GPU of a Mac, and nothing elsewhere; `metal-sim` is every target, simulated.
    Raises `UsageError` for an unknown spec.
    """
    if spec == "none" or (spec == "auto" and not (host.is_apple_silicon and host.torch)):
        return None, None
    device = "mps" if spec == "auto" else spec
    if device != SIMULATOR:
        check_device_spec(device)
    return device, next(
        (t.id for t in targets if _is_here(t, host)), None
    ) if device == "mps" else None


def simulated_target(device: str, targets: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """`metal-sim:2.15.0` as device and target, whichever way they were given.

    Raises `UsageError` when two places name a release.
    """
    if not is_simulator(device) or device == SIMULATOR:
        return device, tuple(targets)
    target = sim_target(device)
    if targets:
        raise UsageError(
            f"--device {device} and --target both name a release",
            remedy=f"Write --device {SIMULATOR} and name releases with --target.",
        )
    return SIMULATOR, (target.id,)


def require_simulated(targets: Sequence[Target], *, timing: bool) -> None:
    """Refuse before the model is captured what the simulator would refuse after it.

    Raises `UsageError` for what cannot be simulated, `PrepareError` for a release that is not
    prepared.
    """
    if timing:
        raise UsageError(
            "--timing: the simulator says nothing about speed", remedy="Leave one of them out."
        )
    from scanner.sim.prepare.release import find_prepared

    for target in targets:
        find_prepared(target.version)


def _is_here(target: Target, host: Host) -> bool:
    installed = (host.torch or "").partition("+")[0]
    return target.version == installed and target.macos in {None, host.macos}


def choose_autocast(text: str | None, device: str | None) -> tuple[str, ...]:
    """The dtypes of `--autocast`; raises `UsageError` for a bad one, or without a real device."""
    if text is None:
        return ()
    dtypes = parse_dtypes(text)
    if device == SIMULATOR:
        raise UsageError(
            f"--autocast {text}: the simulator runs the model's own dtypes only",
            remedy="Leave one of them out.",
        )
    require_device((f"--autocast {text}",), device)
    return dtypes


def choose_ulp(ulp: str, device: str | None) -> dict[str, str]:
    """The option of `--ulp` for the runner, none for `nearest`, which is what is always run.

    Raises `UsageError` for `worst` anywhere but in the simulator.
    """
    if ulp == "nearest":
        return {}
    if device != SIMULATOR:
        raise UsageError(
            f"--ulp {ulp}: only the simulator can choose how approximate functions err",
            remedy="Add --device metal-sim, or leave it out.",
        )
    return {"ulp": ulp}


def claim_repro(folder: Path | None, device: str | None) -> None:
    """See before a scan that `--repro` can be done; raises `UsageError`."""
    if folder is None:
        return
    require_device((f"--repro {folder}",), device)
    claim_folder(folder)


def require_device(flags: Iterable[str], device: str | None) -> None:
    """Refuse flags about runs where nothing is run; raises `UsageError`."""
    for flag in flags:
        if device is None:
            raise UsageError(
                f"{flag} needs a device, and nothing is run here",
                remedy="Name one, as --device mps, cuda or cpu.",
            )


def choose_whole(steps: int | None, batch: str | None, device: str | None) -> tuple[int, ...]:
    """The batch sizes; raises `UsageError` for bad ones, and without a device for whole steps."""
    sizes = batch_sizes(batch)
    if steps is None and not sizes:
        return ()
    flag = "--steps" if steps is not None else "--batch"
    if device == SIMULATOR:
        raise UsageError(
            f"{flag} needs a real device: the simulator runs single ops only",
            remedy="Leave one of them out.",
        )
    require_device((flag,), device)
    return sizes


def batch_sizes(text: str | None) -> tuple[int, ...]:
    """The sizes in `8,16,32`, each once and rising; none for None. Raises `UsageError`."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and 0 < int(part) <= _LARGEST):
            raise UsageError(
                f"--batch {text}: {part!r} is no batch size",
                remedy=f"Give whole numbers from 1 to {_LARGEST}, as --batch 8,16,32,64.",
            )
    return tuple(sorted({int(part) for part in parts}))


def store_path() -> Path:
    """The file of measurements in the user's data directory."""
    from platformdirs import user_data_path

    return user_data_path("opscan") / "measurements.sqlite"


def kept(*, fresh: bool) -> Keeping:
    """Where a scan keeps what it measures."""
    store = store_path()
    return Keeping(store=store, fresh=fresh, journals=store.with_name("unfinished"))


class Messages(Observer):
    """Progress on a terminal, notices always, both on stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self._live = not quiet and sys.stderr.isatty()
        self._quiet = quiet
        self._shown = 0.0

    def ready(self, facts: DeviceFacts, total: int, reused: int) -> None:
        """Names the device."""
        if self._live:
            known = f", {reused} known from before" if reused else ""
            doing = f"simulating {facts.framework}:" if facts.backend == SIMULATOR else "running"
            sys.stderr.write(f"{doing} {total} configurations on {facts.name}{known}\n")

    def progress(self, progress: Progress) -> None:
        """Rate and remaining time, at most a few times a second."""
        now = time.monotonic()
        if not self._live or (now - self._shown < _EVERY_S and progress.done < progress.total):
            return
        self._shown = now
        left = f", {progress.remaining_s:.0f} s left" if progress.remaining_s is not None else ""
        end = "\n" if progress.done == progress.total else "\r"
        text = f"{progress.done}/{progress.total}, {progress.rate:.0f} a second{left}"
        sys.stderr.write(f"{text:<60}{end}")

    def notice(self, text: str) -> None:
        """Things that are not about an op."""
        if not self._quiet:
            sys.stderr.write(f"opscan: note: {text}\n")
