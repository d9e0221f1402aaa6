"""Injects faults at random and counts what a probe makes of them.

    python bench/drill.py --faults 400 --seed 0

A pool of configurations, one for each op, is first probed undisturbed: all must pass. Then faults
are drawn, a few ops at a time, and the whole pool is probed on a drill of them. Printed are the
share of faults that were detected, that were blamed on the right op, the ops that were accused
without a fault, and those that got lost.
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from scanner.probe.limits import Launch, Limits
from scanner.probe.plan import config_key
from scanner.probe.protocol import Outcome
from scanner.probe.supervisor import probe
from scanner.records import OpCall, TensorSpec

NAMES = [
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "erf",
    "abs",
    "neg",
    "reciprocal",
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "pow",
    "atan2",
    "mm",
    "bmm",
    "addmm",
    "sum",
    "mean",
    "var",
    "std",
    "logsumexp",
    "linalg.vector_norm",
    "prod",
    "amax",
    "cumsum",
    "softmax",
    "log_softmax",
    "nn.functional.conv2d",
    "nn.functional.layer_norm",
    "nn.functional.group_norm",
    "nn.functional.gelu",
    "nn.functional.silu",
    "nn.functional.softplus",
    "nn.functional.elu",
    "nn.functional.leaky_relu",
    "nn.functional.mse_loss",
    "nn.functional.smooth_l1_loss",
    "nn.functional.nll_loss",
    "nn.functional.binary_cross_entropy",
    "nn.functional.embedding",
    "nn.functional.avg_pool2d",
    "nn.functional.max_pool2d",
    "nn.functional.interpolate.bilinear",
    "nn.functional.pad.reflect",
    "nn.functional.grid_sample",
    "linalg.cholesky",
    "linalg.inv",
    "linalg.solve",
    "gather",
    "index_select",
    "scatter",
    "index_add",
    "masked_fill",
    "where",
    "cat",
    "stack",
    "roll",
    "flip",
    "tril",
    "sort",
    "topk",
    "argmax",
]
IN_PLACE: dict[str, dict[str, int]] = {
    "add_": {"alpha": 1},
    "mul_": {},
    "sub_": {"alpha": 1},
    "div_": {},
}
IN_PLACE_UNARY = ("exp_", "sigmoid_", "tanh_", "relu_", "neg_", "abs_", "sin_", "cos_", "silu_")

EXPECTED: dict[str, frozenset[str]] = {
    **dict.fromkeys(("abort", "segfault", "exit", "late", "hang", "partial"), frozenset({"crash"})),
    "oom": frozenset({"unknown"}),
    **dict.fromkeys(("raise", "missing"), frozenset({"unsupported"})),
    "nan": frozenset({"nan"}),
    "unnan": frozenset({"nan", "wrong"}),
    **dict.fromkeys(("bias", "tile", "dtype", "stride", "noinplace", "grad"), frozenset({"wrong"})),
    "slow": frozenset({"slow"}),
    "fallback": frozenset({"fallback"}),
    **dict.fromkeys(("noise", "garbage"), frozenset({"native"})),
}
"""Fault → statuses that detect it. Noise and garbage must not be taken for faults of the op."""

HARMLESS = frozenset({"noise", "garbage"})
ALONE = {"slow": {"timing": True, "timing_s": 0.2}, "unnan": {"stress": True}}
"""Faults that need options which would slow all other rounds down."""


@dataclass
class Score:
    """What a fault kind has come to."""

    injected: int = 0
    detected: int = 0
    seconds: float = 0.0
    missed: list[str] = field(default_factory=list)


def main() -> int:
    """Run the drill; exit 1 when anything was missed, misjudged or lost."""
    options = _options()
    rng = random.Random(options.seed)
    pool = _undisturbed(_pool())
    print(f"pool: {len(pool)} ops, all pass undisturbed")
    scores: dict[str, Score] = defaultdict(Score)
    wrong: Counter[str] = Counter()
    start = time.monotonic()
    left = _kinds(options.faults, [options.only] if options.only else sorted(EXPECTED), rng)
    while left:
        faults, left = _round(left, pool, options.per_round, rng)
        there = pool
        if "unnan" in faults.values():
            # Stress values are a test of their own; here they only have to bring NaN about.
            there = [each for each in pool if "unnan" in each.kinds]
        _account(faults, there, _drill(faults, there, options), scores, wrong)
        done = options.faults - len(left)
        print(f"  {done} faults, {time.monotonic() - start:.0f} s, {dict(wrong)}", flush=True)
    return _report(scores, wrong)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-round", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", choices=sorted(EXPECTED), help="draw only this fault")
    parser.add_argument("--patience", type=float, default=4.0, help="deadline, in seconds")
    return parser.parse_args()


def _pool() -> list[OpCall]:
    """The largest configuration of each op that the names lead to, and ops that write."""
    command = [sys.executable, "-m", "scanner.probe.opinfo", "--samples", "4", *NAMES]
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    calls = [msgspec.json.decode(line, type=dict[str, OpCall | str])["call"] for line in lines]
    largest: dict[str, OpCall] = {}
    for call in calls:
        assert isinstance(call, OpCall)
        if _elements(call) > 1 and _elements(call) > _elements(largest.get(call.op)):
            largest[call.op] = call
    return [*largest.values(), *_writing()]


def _writing() -> list[OpCall]:
    def spec(name: str) -> TensorSpec:
        return TensorSpec(name=name, dtype="float32", shape=(6, 7), stride=(7, 1))

    binary = [
        OpCall(
            op=f"aten::{name}.Tensor",
            phase="optimizer",
            inputs=(spec("self"), spec("other")),
            attributes=dict(attributes),
        )
        for name, attributes in IN_PLACE.items()
    ]
    unary = [
        OpCall(op=f"aten::{name}", phase="optimizer", inputs=(spec("self"),))
        for name in IN_PLACE_UNARY
    ]
    return [*binary, *unary]


def _elements(call: OpCall | None) -> int:
    """Elements of the largest floating-point output; 0 when any operand is empty."""
    if call is None or any(0 in spec.shape for spec in call.inputs):
        return 0
    floats = [spec.shape for spec in call.outputs if spec.dtype.startswith("float")]
    return max((math.prod(shape) for shape in floats), default=0)


@dataclass(frozen=True)
class Entry:
    """A configuration of the pool and what can be done to it."""

    call: OpCall
    key: str
    kinds: frozenset[str]


def _undisturbed(calls: list[OpCall]) -> list[Entry]:
    latest = {each.key: each for each in probe(calls, "cpu", {"repeats": 1})}
    bad = [
        f"{call.op}: {latest[config_key(call)].status} {latest[config_key(call)].reason}"
        for call in calls
        if latest[config_key(call)].status != "native"
    ]
    if bad:
        raise SystemExit("the pool does not pass undisturbed:\n" + "\n".join(bad))
    return [
        Entry(call, config_key(call), _applicable(call, latest[config_key(call)])) for call in calls
    ]


def _applicable(call: OpCall, outcome: Outcome) -> frozenset[str]:
    """Faults that change what the op does: an exact op has no noise, one element no stride."""
    writes = call.op.partition(".")[0].endswith("_")
    kinds = set(EXPECTED) - {"noinplace", "grad", "noise", "unnan", "slow"}
    standards = {output["standard"] for output in outcome.detail["outputs"]}
    if "exact" not in standards:
        kinds.add("noise")
    if writes:
        kinds |= {"noinplace"}
        kinds -= {"dtype", "stride"}
    gradient = outcome.detail["gradient"]
    # The gradient of a rounded quotient is zero, however it is scaled.
    if gradient and gradient["status"] == "native" and call.op != "aten::div.Tensor_mode":
        kinds.add("grad")
    if call.op in {"aten::exp", "aten::sin", "aten::cos", "aten::tanh", "aten::abs", "aten::neg"}:
        kinds.add("unnan")
    return frozenset(kinds | {"slow"})


def _kinds(count: int, kinds: list[str], rng: random.Random) -> list[str]:
    """As many of each kind, in random order; those that need rounds of their own together."""
    drawn = [kinds[number % len(kinds)] for number in range(count)]
    rng.shuffle(drawn)
    return sorted(drawn, key=lambda kind: list(ALONE).index(kind) if kind in ALONE else -1)


Faults = dict[str, str]
"""Key of a configuration → the fault injected into its op."""


def _round(
    left: list[str], pool: list[Entry], most: int, rng: random.Random
) -> tuple[Faults, list[str]]:
    """Put the next faults on distinct ops; what finds no op waits for the next round."""
    alone = left[0] if left[0] in ALONE else ""
    faults: Faults = {}
    rest = list(left)
    for kind in left:
        if len(faults) == most or (kind if kind in ALONE else "") != alone:
            break
        able = [each for each in pool if kind in each.kinds and each.key not in faults]
        if not able:
            break
        faults[rng.choice(able).key] = kind
        rest.remove(kind)
    return faults, rest


def _drill(faults: Faults, pool: list[Entry], options: argparse.Namespace) -> dict[str, Outcome]:
    ops = {each.key: each.call.op for each in pool}
    spec = ",".join(f"{kind}={ops[key]}" for key, kind in faults.items())
    run_options = next((ALONE[kind] for kind in faults.values() if kind in ALONE), {})
    # Enough for any of these ops, so that hangs do not take the day.
    limits = (
        Limits(case_s=10.0, first_s=10.0)
        if run_options
        else Limits(case_s=options.patience, first_s=options.patience)
    )
    return {
        each.key: each
        for each in probe(
            [each.call for each in pool],
            f"drill:{spec}",
            run_options,
            launch=Launch(workers=options.workers),
            limits=limits,
        )
    }


def _account(
    faults: Faults,
    pool: Sequence[Entry],
    found: dict[str, Outcome],
    scores: dict[str, Score],
    wrong: Counter[str],
) -> None:
    for entry in pool:
        outcome = found.get(entry.key)
        kind = faults.get(entry.key)
        if outcome is None:
            wrong["lost"] += 1
            continue
        if kind is not None:
            score = scores[kind]
            score.injected += 1
            if outcome.status in EXPECTED[kind]:
                score.detected += 1
            else:
                score.missed.append(f"{entry.call.op}: {outcome.status} {outcome.reason}")
        elif outcome.status == "unknown":
            wrong["lost"] += 1
            print(f"    lost {entry.call.op}: {outcome.reason}")
        elif outcome.status != "native":
            wrong["false alarms"] += 1
            print(f"    false alarm {entry.call.op}: {outcome.status} {outcome.reason}")


def _report(scores: dict[str, Score], wrong: Counter[str]) -> int:
    print(f"{'fault':>10}  injected  as expected")
    for kind, score in sorted(scores.items()):
        print(f"{kind:>10}  {score.injected:8}  {score.detected:8}")
        for line in score.missed:
            print(f"            {line}")
    real = [score for kind, score in scores.items() if kind not in HARMLESS]
    injected, detected = sum(s.injected for s in real), sum(s.detected for s in real)
    false = wrong["false alarms"] + sum(
        score.injected - score.detected for kind, score in scores.items() if kind in HARMLESS
    )
    total = sum(score.injected for score in scores.values())
    print(f"{total} faults, {total - injected} of them harmless")
    # An op that has a fault and shows the status of another one would have been blamed wrongly.
    print(
        f"detected and blamed on the right op: {detected} of {injected} ({detected / injected:.1%})"
    )
    print(f"false alarms: {false}; others lost: {wrong['lost']}; the supervisor lived")
    return int(detected < injected or false > 0 or wrong["lost"] > 0)


if __name__ == "__main__":
    sys.exit(main())
