"""Does the capture see what really runs? `python bench/recall.py [FIXTURE ...]`

Every fixture's step is captured by opscan, then run again for real on the CPU and watched by
something as simple as possible. Three comparisons, by overload and number of calls:

    held      as the newest release dispatches on MPS: opscan's capture against a plain dispatch
              mode over real values, with the same ops held and CPU-only libraries off
    cpu       nothing held: opscan's capture against a run outside of opscan's world altogether;
              names that exist for the CPU alone are set aside and listed
    unwatched the held run without any dispatch mode, from the profiler's events: what composite
              kernels do when no mode is there to be noticed (torch's C++ takes other branches for
              tensor subclasses, and a mode counts as one)

Exit code 1 when `held` or `cpu` miss an overload or have one too many; `unwatched` is information.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.autograd.profiler_util import EventList
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from opdb import query  # noqa: E402
from scanner.capture.describe import op_name  # noqa: E402
from scanner.capture.frames import Frames  # noqa: E402
from scanner.capture.holds import held  # noqa: E402
from scanner.capture.ladder import Climb, climb  # noqa: E402
from scanner.capture.loader import Loader  # noqa: E402
from scanner.capture.lowering import CPU_ONLY  # noqa: E402
from scanner.capture.placement import Placement  # noqa: E402
from scanner.capture.protocol import Failed, Graph, Profile  # noqa: E402
from scanner.capture.world import world  # noqa: E402
from scanner.judge.profile import profile_for  # noqa: E402
from scanner.locate.interface import LocateOptions, Source, Subject  # noqa: E402
from scanner.records import Target  # noqa: E402

MODELS = ROOT / "fixtures" / "models"
SMALLER = {
    "llama": {
        "vocab: int = 32000": "vocab: int = 500",
        "width: int = 4096": "width: int = 64",
        "hidden: int = 11008": "hidden: int = 172",
        "context: int = 512": "context: int = 32",
    },
    "nanogpt": {
        "vocab_size: int = 50304": "vocab_size: int = 50257",
        "n_embd: int = 384": "n_embd: int = 48",
    },
}
"""Fixtures too large for real values: the same number of layers, narrower."""
OWN_WAYS = {
    "molecule_gnn": {
        "aten::_local_scalar_dense": "one_hot looks at its indices on the CPU",
        "aten::aminmax": "one_hot looks at its indices on the CPU",
    },
    "sentiment_lstm": {
        "aten::_foreach_clamp_max_.Scalar": "gradients are clipped in groups, but not on mps",
        "aten::_foreach_clamp_min_.Scalar": "gradients are clipped in groups, but not on mps",
        "aten::clamp_": "gradients are clipped in groups, but not on mps",
        "aten::fill_.Scalar": "mish_backward is composite when it is not held",
        "aten::mish_backward": "mish_backward is composite when it is not held",
        "aten::sigmoid": "mish_backward is composite when it is not held",
        "aten::softplus": "mish_backward is composite when it is not held",
        "aten::sub_.Tensor": "mish_backward is composite when it is not held",
    },
    "speech_ctc": {
        "aten::_ctc_loss": "lengths stay in tensors while a dispatch mode is active",
        "aten::_ctc_loss.Tensor": "lengths stay in tensors while a dispatch mode is active",
        "aten::_ctc_loss_backward": "lengths stay in tensors while a dispatch mode is active",
        "aten::_ctc_loss_backward.Tensor": "lengths stay in tensors under a dispatch mode",
    },
    "train_resnet": {
        "aten::_foreach_mul_.Tensor": "gradients are clipped in groups, but not on mps",
        "aten::_foreach_norm.Scalar": "gradients are clipped in groups, but not on mps",
        "aten::mul_.Tensor": "gradients are clipped in groups, but not on mps",
    },
}
"""Differences of `cpu` that are the CPU's own: a machine with an Apple GPU does not do this."""
BOOKKEEPING = frozenset({"prim", "profiler"})

ANSWERING = ("CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
"""Dispatch keys whose kernels answer a CPU tensor's call below autograd."""

BRANCHES = frozenset(
    {
        "aten::lstm.input",
        "aten::one_hot",
        "aten::rms_norm",
        "aten::scaled_dot_product_attention",
    }
)
"""Composite ops for which `held` puts MPS' branch in a kernel's place."""

Calls = Counter[str]
Watch = Callable[[Callable[[], None]], Calls]


class Watcher(TorchDispatchMode):
    """Counts the overloads that reach a backend."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Calls = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace not in BOOKKEEPING:
            self.calls[op_name(func)] += 1
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class Comparison:
    """Two ways of seeing one step."""

    captured: Calls
    seen: Calls
    expected: frozenset[str] = frozenset()
    """Overloads that may differ."""

    @property
    def missing(self) -> list[str]:
        """Overloads that run and are not captured."""
        return sorted(self.seen.keys() - self.captured.keys() - self.expected)

    @property
    def extra(self) -> list[str]:
        """Overloads that are captured and do not run."""
        return sorted(self.captured.keys() - self.seen.keys() - self.expected)

    @property
    def counts(self) -> list[str]:
        """Overloads that both see, but not equally often."""
        both = sorted(self.captured.keys() & self.seen.keys())
        different = [op for op in both if self.captured[op] != self.seen[op]]
        return [f"{op} {self.captured[op]}/{self.seen[op]}" for op in different]


@dataclass(frozen=True)
class Seen:
    """A captured model."""

    method: str
    infer: bool
    calls: Calls


@dataclass(frozen=True)
class Row:
    """What was compared for one model."""

    method: str
    held: Comparison
    cpu: Comparison
    unwatched: Comparison


def smaller(name: str, folder: Path) -> Path:
    """The fixture's file, shrunk where need be."""
    text = (MODELS / f"{name}.py").read_text()
    for old, new in SMALLER.get(name, {}).items():
        assert old in text, (name, old)
        text = text.replace(old, new)
    path = folder / f"{name}.py"
    path.write_text(text)
    return path


def loader(path: Path) -> Loader:
    """Runs the file as opscan does."""
    frames = Frames(path.parent)
    return Loader(Source(argument=path.name, path=path), LocateOptions(), path.parent, frames)


def captured(path: Path, profile: Profile) -> dict[str, Seen]:
    """Entry → what opscan captures, named as before the lowering."""
    job = Climb(
        find=loader(path).find,
        source=path.name,
        mode="auto",
        profiles=(profile,),
        skip=frozenset(),
        frames=Frames(path.parent),
    )
    found: dict[str, Seen] = {}
    for message in climb(job):
        if isinstance(message, Graph):
            graph = message.graph
            calls: Calls = Counter()
            for call in graph.ops:
                calls[call.via or call.op] += call.calls
            found[message.entry] = Seen(graph.capture.method, graph.mode == "infer", calls)
        elif isinstance(message, Failed):
            print(f"  {path.stem}:{message.entry} could not be captured: {message.message}")
    return found


def run_step(subject: Subject, placement: Placement | None, *, infer: bool) -> None:
    """One step in ordinary PyTorch."""
    model = subject.model
    model.train(not infer)
    with torch.set_grad_enabled(not infer):
        output = (subject.forward or model)(*subject.args, **subject.kwargs)
    if infer:
        return
    run_backward(subject.loss(output) if subject.loss else output)
    if placement is not None:
        placement.default = "host"  # where optimizers make their counters
    if subject.clip:
        subject.clip()
    if subject.optimizer:
        subject.optimizer.step()


def run_backward(output: Any) -> None:
    """From the loss, or from all outputs with gradients of one."""
    leaves = torch.utils._pytree.tree_leaves(output)
    outputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if len(outputs) == 1 and outputs[0].numel() == 1:
        outputs[0].backward()
        return
    with torch.utils._python_dispatch._disable_current_modes():
        seeds = [torch.ones_like(output) for output in outputs]
    torch.autograd.backward(outputs, seeds)


def by_mode(step: Callable[[], None]) -> Calls:
    """Calls that reach a backend, seen by a dispatch mode."""
    with Watcher() as watcher:
        step()
    return watcher.calls


def by_profiler(step: Callable[[], None]) -> Calls:
    """Calls that a backend answers, from the profiler: composite ops are looked into."""
    names = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    cpu = [ProfilerActivity.CPU]
    # The profiler drops a call that shares its name with its only caller: `upsample` below `.vec`.
    with mock.patch.object(EventList, "_remove_dup_nodes"):
        with profile(activities=cpu, experimental_config=names) as recording:
            step()
        roots = [event for event in recording.events() if event.cpu_parent is None]
    return Counter(name for event in roots for name in answered(event))


def answered(event: Any) -> Iterator[str]:
    """The event's op where a backend kernel answers it, else what it calls in turn."""
    name = f"{event.name}.{event.overload_name}" if event.overload_name else event.name
    if name.startswith("aten::") and has_kernel(name):
        yield name
        return
    for child in event.cpu_children:
        yield from answered(child)


def has_kernel(name: str) -> bool:
    """Whether a CPU tensor's call ends here instead of being decomposed above autograd."""
    if name in BRANCHES:
        return False
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in ANSWERING)


def seen_held(
    path: Path, holds: frozenset[str], watch: Watch, models: dict[str, Seen]
) -> dict[str, Calls]:
    """Entry → calls in opscan's world, with real values."""
    calls = {}
    with world("real") as placement:
        for candidate in loader(path).find("real").candidates:
            if candidate.entry not in models:
                continue
            placement.default = "target"
            subject = candidate.build()
            step = partial(run_step, subject, placement, infer=models[candidate.entry].infer)
            with held(holds):
                calls[candidate.entry] = watch(step)
    return calls


def seen_on_cpu(path: Path, models: dict[str, Seen]) -> dict[str, Calls]:
    """Entry → calls outside of any world: the file finds a machine with a CPU and nothing else."""
    calls = {}
    with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
        for candidate in loader(path).find("real").candidates:
            if candidate.entry not in models:
                continue
            infer = models[candidate.entry].infer
            step = partial(run_step, candidate.build(), None, infer=infer)
            calls[candidate.entry] = by_mode(step)
    return calls


def compare(name: str, folder: Path) -> dict[str, Row]:
    """All comparisons for the models of one fixture."""
    path = smaller(name, folder)
    newest = profile_for(Target(framework="torch", version=query.newest()), query)
    bare = Profile(id="bare", holds=(), release=query.newest())
    whole, decomposed = captured(path, newest), captured(path, bare)
    holds = frozenset(newest.holds)
    seen = seen_held(path, holds, by_mode, whole)
    alone = seen_held(path, holds, by_profiler, whole)
    cpu = seen_on_cpu(path, whole)
    own = frozenset(OWN_WAYS.get(name, {}))
    return {
        entry: Row(
            method=model.method,
            held=Comparison(model.calls, seen[entry]),
            cpu=Comparison(decomposed[entry].calls, cpu[entry], own),
            unwatched=Comparison(model.calls, alone[entry]),
        )
        for entry, model in whole.items()
    }


def show(label: str, row: Row) -> None:
    """One line of numbers, then every difference."""
    held, cpu = row.held, row.cpu
    print(
        f"{label:34} {row.method:5} {len(held.seen):5} {len(held.missing):4} {len(held.extra):4}"
        f" {held.seen.total():7} {len(cpu.seen):8} {len(cpu.missing):4} {len(cpu.extra):4}"
        f" {len(row.unwatched.seen):10} {len(row.unwatched.missing):4} {len(row.unwatched.extra):4}"
    )
    for kind, comparison in (("held", held), ("cpu", cpu), ("unwatched", row.unwatched)):
        for what in ("missing", "extra", "counts"):
            names = getattr(comparison, what)
            if names and not (kind == "unwatched" and what == "counts"):
                print(f"    {kind}: {what} {', '.join(names)}")
    for_cpu = [op for op in cpu.seen if any(part in op for part in CPU_ONLY)]
    if for_cpu:
        print(f"    cpu: exists for the CPU alone: {', '.join(for_cpu)}")


def totals(rows: list[Row]) -> int:
    """Sums over all models; 1 when anything is missed or invented."""
    wrong = 0
    for kind in ("held", "cpu", "unwatched"):
        comparisons = [getattr(row, kind) for row in rows]
        seen = sum(len(c.seen) for c in comparisons)
        missing = sum(len(c.missing) for c in comparisons)
        extra = sum(len(c.extra) for c in comparisons)
        share = 100 * (seen - missing) / seen
        print(f"{kind:10} overloads seen {seen}, missing {missing}, extra {extra}: {share:.2f} %")
        wrong += 0 if kind == "unwatched" else missing + extra
    return int(wrong > 0)


def main() -> int:
    """Print a table and the totals; 1 when the capture misses or invents an overload."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("fixtures", nargs="*", help="names in fixtures/models; default: all")
    names = parser.parse_args().fixtures or sorted(path.stem for path in MODELS.glob("*.py"))
    warnings.simplefilter("ignore")
    heads = f"{'':34} {'rung':5} {'held':>5} miss extra  calls {'cpu':>8} miss extra"
    print(f"{heads} {'unwatched':>9} miss extra")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            compared = compare(name, Path(folder))
            for entry, row in compared.items():
                show(f"{name}:{entry}", row)
            rows += compared.values()
    return totals(rows)


if __name__ == "__main__":
    sys.exit(main())
