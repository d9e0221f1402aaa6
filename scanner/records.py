"""The nouns of a scan. Every stage reads the records of the one above and returns new ones.

All records are frozen and encode to JSON with msgspec; the JSON names are the field names.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = [
    "Accumulated",
    "BatchPoint",
    "BatchSweep",
    "CallOrder",
    "Capture",
    "Coverage",
    "Divergence",
    "Evidence",
    "Finding",
    "Fix",
    "LineIgnore",
    "Location",
    "Measurement",
    "ModelReport",
    "OpCall",
    "OpGraph",
    "OpReport",
    "Phase",
    "Report",
    "Severity",
    "SourceScan",
    "Status",
    "Step",
    "StepLoss",
    "Summary",
    "Suppression",
    "Target",
    "TensorSpec",
    "Unseen",
    "Value",
    "Variant",
    "Verdict",
]

Phase = Literal["forward", "loss", "backward", "optimizer"]
"""Part of the step that an op belongs to. Gradient clipping counts as optimizer."""

Status = Literal[
    "native",
    "composite",
    "fallback",
    "unsupported",
    "crash",
    "wrong",
    "nan",
    "slow",
    "unknown",
    "skipped",
]
"""What happens to a configuration on a target. `unknown` is never a pass."""

Evidence = Literal["measured", "simulated", "database", "upstream", "issue", "inferred"]
"""How a verdict is known, strongest first."""

Severity = Literal["error", "warning", "note"]


class _Record(msgspec.Struct, frozen=True):
    """Base of every record: immutable, keyword-only, compared by value."""


class TensorSpec(_Record, frozen=True, kw_only=True):
    """One tensor argument of an op, as the device would receive it."""

    name: str
    """Schema argument: `self`, `weight`; elements of a list are `tensors[0]`, `tensors[1]`, …"""
    dtype: str
    """Without the module prefix: `float32`, `int64`, `bool`."""
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements; empty for layouts without strides."""
    offset: int = 0
    """Storage offset in elements."""
    layout: str = "strided"
    device: str = "target"
    """`target`, or `cpu` for a tensor that the user keeps on the host."""
    alias: int | None = None
    """Position in `inputs` of the first earlier tensor that shares this one's storage."""


class Location(_Record, frozen=True, kw_only=True):
    """Where in the user's own code an op comes from."""

    file: str
    """Relative to the working directory where possible, `/` as separator."""
    line: int
    """1-based."""
    code: str = ""
    """The source line, stripped."""
    module: str = ""
    """Module path as in `named_modules()`: `layers.0.attn`; empty for the root or outside one."""
    library: str = ""
    """`file:line` in the library that was called from there, when the op was issued by one."""
    column: int | None = None
    """1-based, in characters; None for places known by their line alone."""
    end_line: int | None = None
    end_column: int | None = None
    """1-based, of the character after the last."""


class OpCall(_Record, frozen=True, kw_only=True):
    """One configuration of one op in one phase, with everything that ran under it."""

    op: str
    """Qualified overload as dispatched on the target: `aten::linalg_svd.U`, `aten::mm`."""
    phase: Phase
    inputs: tuple[TensorSpec, ...]
    """Tensor arguments in schema order, lists flattened."""
    outputs: tuple[TensorSpec, ...] = ()
    """Tensors returned, named `0`, `1`, …"""
    attributes: dict[str, Any] = {}
    """Non-tensor arguments by schema name, defaults included when given.

    dtypes, layouts, devices and memory formats are their bare names; infinities, NaN and complex
    numbers are strings as Python prints them.
    """
    calls: int = 1
    locations: tuple[Location, ...] = ()
    """Distinct places, in order of first execution."""
    via: str = ""
    """Overload as captured, when the target dispatches another one for it."""
    values: dict[str, tuple[int, ...]] = {}
    """Elements of small integer and bool arguments by name, row-major, where the step had some."""
    inner: dict[str, tuple[str, ...]] = {}
    """What composite kernels called, at the first call: qualified overload → those that it called
    directly. Holds this op and those below it whose calls decide what MPS makes of it."""


class Step(_Record, frozen=True, kw_only=True, array_like=True):
    """One executed call, in order; integers point into the graph's tables."""

    op: int
    """Index into `OpGraph.ops`."""
    location: int
    """Index into that op's `locations`; -1 when no user frame was on the stack."""
    reads: tuple[int, ...]
    """Indices into `OpGraph.values`, one for each input tensor."""
    writes: tuple[int, ...]
    """Indices into `OpGraph.values`, one for each output tensor."""


class Value(_Record, frozen=True, kw_only=True, array_like=True):
    """One storage that lived during the step."""

    nbytes: int
    role: str
    """`parameter`, `buffer`, `input`, `constant`, `optimizer` or `activation`."""
    name: str = ""
    """`layers.0.weight` of a parameter or buffer; empty of what has no name."""
    dtype: str = ""
    """Of the tensor that it was first seen as: `float32`."""


class Unseen(_Record, frozen=True, kw_only=True):
    """Part of the step that the capture could not see, and why."""

    what: str
    reason: str


class Capture(_Record, frozen=True, kw_only=True):
    """How a graph was obtained and what it may lack."""

    method: str
    """Rung of the ladder: `meta`, `fake`, `real`, `export`, `symbolic`."""
    complete: bool
    """False when some part of the step is missing from the graph."""
    framework_version: str = ""
    """The version that captured; empty where only the graph says it."""
    notes: tuple[str, ...] = ()
    """What was inferred or assumed: inputs, stand-in loss, optimizer found in the file."""
    unseen: tuple[Unseen, ...] = ()


class OpGraph(_Record, frozen=True, kw_only=True):
    """A captured step."""

    name: str
    """The model's name as the user would say it: `TinyGPT`, `build_model()`."""
    source: str
    """File or module it was found in, relative to the working directory."""
    entry: str
    """What to append to the source to scan only this: `TinyGPT`."""
    framework: Literal["torch", "tensorflow"]
    framework_version: str
    """The version that captured, not the one judged."""
    mode: Literal["train", "infer"]
    holds: tuple[str, ...]
    """Ops that were dispatched whole as the target release does (its lowering profile), sorted."""
    capture: Capture
    ops: tuple[OpCall, ...]
    """In order of first execution."""
    steps: tuple[Step, ...] = ()
    values: tuple[Value, ...] = ()


class Target(_Record, frozen=True, kw_only=True):
    """A machine and framework that the model is judged for."""

    framework: Literal["torch", "tensorflow"]
    version: str
    macos: str | None = None
    chip: str | None = None
    ram: int | None = None
    """GiB of unified memory."""
    fallback: bool = False
    """Whether PYTORCH_ENABLE_MPS_FALLBACK=1 is set."""
    metal: str | None = None
    """tensorflow-metal version, for TensorFlow."""

    @property
    def id(self) -> str:
        """Stable spelling, as accepted by `--target`."""
        extras = {
            "tensorflow-metal==": self.metal,
            "macos=": self.macos,
            "chip=": self.chip,
            "ram=": self.ram,
            "fallback=": "1" if self.fallback else None,
        }
        parts = [f"{key}{value}" for key, value in extras.items() if value is not None]
        return ",".join([f"{self.framework}=={self.version}", *parts])


class Verdict(_Record, frozen=True, kw_only=True):
    """What one target does with one configuration, and how that is known."""

    target: str
    """`Target.id`."""
    status: Status
    evidence: Evidence | None
    """None only for `unknown` and `skipped`."""
    reason: str
    fixed_in: str | None = None
    """First later release in which this status is cured."""
    links: tuple[str, ...] = ()


class Measurement(_Record, frozen=True, kw_only=True):
    """What a device did with one configuration (filled by the probe)."""

    device: str
    status: Status
    detail: dict[str, Any] = {}


class Variant(_Record, frozen=True, kw_only=True):
    """A configuration as autocast would run it, beside the one of the model."""

    dtype: str
    """What its float32 tensors were cast to: `float16`, `bfloat16`."""
    measurement: Measurement
    error: float | None = None
    """The largest |device − reference| ÷ max(|reference|), where the reference is computed in
    double precision from the float32 inputs; None when nothing was compared."""
    base_error: float | None = None
    """The same of the configuration itself."""
    overflows: int = 0
    """Elements that are infinite or NaN in this dtype alone."""
    speedup: float | None = None
    """Seconds of the configuration ÷ seconds of the variant, on the device; None when not timed."""


class Divergence(_Record, frozen=True, kw_only=True):
    """One op of a whole step, run freely on a device, that did not go as on the CPU."""

    op: str
    phase: Phase
    step: int
    """1-based."""
    kind: Literal["wrong", "drift", "nan", "raises", "crash", "hang"]
    """`wrong`: the op errs. `drift`: it computes what the CPU computes of the same inputs; what
    came before it had drifted. The others end the run or spoil it."""
    message: str
    location: Location | None = None
    error: float | None = None
    """Root mean square error relative to the result in double precision."""
    cpu_error: float | None = None
    """The same of the CPU's own run."""


class StepLoss(_Record, frozen=True, kw_only=True):
    """The loss of one step; None where it is not finite or there is none."""

    cpu: float | None
    raised: float | None
    """With every op in double precision."""
    device: float | None


class Accumulated(_Record, frozen=True, kw_only=True):
    """Steps run freely on a device, each op on what the device made before, beside the CPU."""

    device: str
    asked: int
    steps: int = 0
    """How many were run to their end."""
    ops: int = 0
    """How many the device has run."""
    compared: int = 0
    losses: tuple[StepLoss, ...] = ()
    first: Divergence | None = None
    """The first op past its tolerance that errs itself."""
    drift: Divergence | None = None
    """The first op past its tolerance that computes what the CPU computes of the same inputs."""
    first_nan: Divergence | None = None
    """The first op with infinities or NaN that the CPU does not have, or without those it has."""
    ended: Divergence | None = None
    """The op that ended the run."""
    worst: dict[str, float] = {}
    """Phase → the largest error ÷ what is allowed."""
    incomplete: str = ""
    """Why steps are missing, when no op is to blame."""
    notes: tuple[str, ...] = ()


class BatchPoint(_Record, frozen=True, kw_only=True):
    """One batch size."""

    batch: int
    step_s: float
    """Median seconds of a whole step."""
    p10_s: float
    p90_s: float
    spread: float
    """Interquartile range ÷ median."""
    samples: int
    """Steps that were timed."""
    peak_bytes: int | None = None
    """The most that the device held after any op; None for a device without an account."""

    @property
    def sample_s(self) -> float:
        """Seconds for each sample."""
        return self.step_s / self.batch

    @property
    def sample_bytes(self) -> float | None:
        """Peak memory for each sample."""
        return None if self.peak_bytes is None else self.peak_bytes / self.batch


class BatchSweep(_Record, frozen=True, kw_only=True):
    """A whole step at several batch sizes."""

    device: str
    asked: tuple[int, ...]
    points: tuple[BatchPoint, ...] = ()
    best: int | None = None
    """The batch with the least time for each sample."""
    ended: str = ""
    """Why larger batches are missing."""
    incomplete: str = ""
    """Why nothing is known, or less than was asked for, when it is not for lack of memory."""
    notes: tuple[str, ...] = ()


class OpReport(_Record, frozen=True, kw_only=True):
    """One configuration with its verdicts."""

    op: str
    phase: Phase
    calls: int
    config: dict[str, Any]
    """`{"inputs": [...], "attributes": {...}}`; `values` and `inner` if there are any: `OpCall`."""
    verdicts: tuple[Verdict, ...]
    """One for each target that dispatches this op; targets that lower it otherwise are absent."""
    locations: tuple[Location, ...]
    via: str = ""
    measurement: Measurement | None = None
    simulations: dict[str, Measurement] = {}
    """target id → what that release's own code did in the simulator; nothing of it is measured."""
    variants: tuple[Variant, ...] = ()
    """What the device did in half precision, where that was asked for."""
    estimate: dict[str, Any] | None = None


class Fix(_Record, frozen=True, kw_only=True):
    """A change of the source that `opscan fix` makes."""

    description: str
    """As an order: `Replace .cuda() by .to(device)`."""
    safe: bool
    """Whether the program means the same afterwards wherever it ran before."""


class Finding(_Record, frozen=True, kw_only=True):
    """Something the user should act on."""

    rule: str
    severity: Severity
    target: str
    op: str
    message: str
    remedy: str
    location: Location | None
    fixed_in: str | None = None
    links: tuple[str, ...] = ()
    fingerprint: str = ""
    suppressed: str | None = None
    """The user's reason, when an ignore matched; where it was known before, when a baseline did."""
    calls: int = 0
    fix: Fix | None = None
    dtypes: tuple[str, ...] = ()
    """Of the op's tensor inputs, each once."""
    suppressed_by: Literal["line", "settings", "baseline"] | None = None
    """An ignore in a comment, one in the settings, or a baseline; None when not suppressed."""
    baseline_state: Literal["new", "unchanged"] | None = None
    """None when no baseline was given, and for findings that no baseline holds."""


class Coverage(_Record, frozen=True, kw_only=True):
    """How many configurations, calls and (when known) seconds have each status.

    With several targets each configuration counts once, under its worst status.
    """

    by_config: dict[str, int]
    by_call: dict[str, int]
    by_time: dict[str, float] | None = None
    by_target: dict[str, dict[str, dict[str, int]]] = {}
    """target id → `by_config` or `by_call` → status → number."""


class CallOrder(_Record, frozen=True, kw_only=True):
    """The calls of a step in the order in which they were executed."""

    targets: tuple[str, ...]
    """Ids of the targets that dispatch the step so."""
    rows: tuple[int, ...]
    """Index into `ModelReport.ops` for each call."""


class ModelReport(_Record, frozen=True, kw_only=True):
    """Everything known about one model."""

    name: str
    source: str
    entry: str
    mode: str
    capture: Capture | None
    """None when no method could capture the model; the reason is a finding."""
    ops: tuple[OpReport, ...]
    findings: tuple[Finding, ...]
    coverage: Coverage
    memory: dict[str, Any] | None = None
    time: dict[str, Any] | None = None
    accumulated: Accumulated | None = None
    """Whole steps run on a device (`--steps`)."""
    batches: BatchSweep | None = None
    """Whole steps timed on a device (`--batch`)."""
    order: tuple[CallOrder, ...] = ()
    """Empty when the capture kept no order."""


class SourceScan(_Record, frozen=True, kw_only=True):
    """What reading source files showed, without running them."""

    files: int
    """Read, those without a finding included."""
    skipped: int = 0
    """Of these, files that never mention a framework."""
    findings: tuple[Finding, ...] = ()
    """In the order of files, then of lines."""
    roots: tuple[str, ...] = ()
    """Files and directories that were read, `/` as separator; `.` for the working directory."""


class LineIgnore(_Record, frozen=True, kw_only=True):
    """A comment `# opscan: ignore[OPS102] reason` in the user's code."""

    file: str
    """As in `Location`."""
    line: int
    """Of the comment, 1-based."""
    covers: int
    """The line that it is about: its own, or the next one with code."""
    rules: tuple[str, ...]
    reason: str
    """Empty where there is none: the comment then hides nothing."""
    code: str = ""
    """The comment."""


class Suppression(_Record, frozen=True, kw_only=True):
    """What the user has accepted: comments that were read, and what is stale about them."""

    lines: tuple[LineIgnore, ...] = ()
    """Every comment in the files that were looked at, matched or not."""
    findings: tuple[Finding, ...] = ()
    """OPS8xx."""


class Summary(_Record, frozen=True, kw_only=True):
    """Totals over all models and source files."""

    errors: int
    warnings: int
    notes: int
    complete: bool
    """False when a model was not captured or a configuration is unknown."""


class Report(_Record, frozen=True, kw_only=True):
    """The canonical result of a scan; every output format is a function of it."""

    schema: str = "opscan.report/1"
    tool: dict[str, str] = {}
    environment: dict[str, Any] = {}
    """Facts about the machine and moment of the scan; the only part that may hold a timestamp."""
    targets: tuple[Target, ...] = ()
    models: tuple[ModelReport, ...] = ()
    source: SourceScan | None = None
    """None when no source rule was asked."""
    suppression: Suppression | None = None
    """None when there was no ignore and no baseline."""
    summary: Summary
    exit_code: int
