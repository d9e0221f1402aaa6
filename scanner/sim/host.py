"""The simulator's small interface: prepare a release once, open it, call operators.

    prepared = host.prepare("2.15.0")
    with host.open(prepared, macos="15.5", gpu="M2") as session:
        call = session.call("aten::erfc", (torch.linspace(0, 9, 10),))
        print(call.outcome, session.download(call.outputs[0]).torch())

Opening imports unicorn, which is GPL-2.0: only the simulator's worker process does it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.sim.executors import GraphExecutor, ShaderExecutor
    from scanner.sim.gpu import Gpu
    from scanner.sim.machine.memory import Region
    from scanner.sim.prepare.prepared import Prepared
    from scanner.sim.session import Session

__all__ = ["open", "prepare"]

_MACOS = re.compile(r"(\d+)(?:\.(\d+))?(?:\.\d+)?")


def prepare(
    release: str,
    root: Path | None = None,
    progress: Callable[[str], None] | None = None,
    wheel: Path | None = None,
) -> Prepared:
    """The prepared release, made if it is not there: some minutes the first time.

    `root` is the folder of prepared releases (default: the user's cache), `wheel` a file to use
    instead of the published one. `progress` is told each step. Raises PrepareError.
    """
    from scanner.sim.prepare import release as steps

    return steps.prepare(release, root, progress or (lambda _step: None), wheel)


def open(
    prepared: Prepared,
    macos: str = "15.5",
    gpu: str | Gpu = "M2",
    shaders: Callable[[Region], ShaderExecutor] | None = None,
    graphs: GraphExecutor | None = None,
    fallback: bool = False,
) -> Session:
    """Starts a process of a prepared release, in well under two seconds.

    `graphs` interprets graphs, by default with torch. Without `shaders` no kernel is executed, and
    calls that need one are *unknown*. `fallback` stands for `PYTORCH_ENABLE_MPS_FALLBACK=1`. Raises
    UsageError for a macOS version or chip that is not understood, PrepareError where a release was
    prepared before `fallback` could be had.
    """
    from scanner.sim.graph.interpreter import Interpreter
    from scanner.sim.session import Session

    interpreter = graphs or Interpreter()
    return Session(
        prepared, macos_version(macos), known_gpu(gpu), shaders, interpreter, fallback=fallback
    )


def macos_version(text: str) -> tuple[int, int]:
    """`15.5` → (15, 5); `26` → (26, 0)."""
    found = _MACOS.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is not a macOS version", remedy="Give one such as 15.5.")
    return int(found[1]), int(found[2] or 0)


def known_gpu(gpu: str | Gpu, ram: int | None = None) -> Gpu:
    """A chip by name, with `ram` GiB of memory; raises UsageError that lists the known ones."""
    from scanner.sim.gpu import CHIPS, chip

    if not isinstance(gpu, str):
        return gpu
    try:
        return chip(gpu, ram)
    except (KeyError, IndexError):
        known = ", ".join(CHIPS)
        raise UsageError(
            f"the chip {gpu!r} is not known to the simulator", remedy=f"Choose one of {known}."
        ) from None
