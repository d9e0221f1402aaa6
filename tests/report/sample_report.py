"""A report with one of everything that formats must show."""

from __future__ import annotations

from typing import Any

import msgspec

from scanner.capture.ledger import Captured, NotCaptured
from scanner.capture.protocol import Attempt
from scanner.judge.gate import Gate, exit_code, summarize
from scanner.judge.measured import with_measurements, with_simulation
from scanner.judge.models import judge_model, model_without_graph
from scanner.judge.whole import with_whole
from scanner.probe.whole import Whole
from scanner.records import (
    Accumulated,
    BatchPoint,
    BatchSweep,
    Capture,
    Divergence,
    Location,
    Measurement,
    ModelReport,
    OpCall,
    OpGraph,
    Report,
    Status,
    StepLoss,
    Target,
    Unseen,
    Variant,
)
from tests.samples import (
    COMPOSITE,
    KERNEL,
    MISSING,
    RAISES,
    SILENT,
    TORCH_29,
    TORCH_214,
    Facts,
    at,
    call,
    graph,
    spec,
)

KNOWN = Facts(
    {
        "aten::mm": KERNEL,
        "aten::t": COMPOSITE,
        "aten::_to_copy": KERNEL,
        "aten::mul.Tensor": KERNEL,
        "aten::_foreach_add_.List": KERNEL,
        ("aten::_linalg_eigh", "2.9.1"): MISSING
        | {"fixed_in": "2.14.0", "links": ("https://github.com/pytorch/pytorch/issues/141287",)},
        ("aten::_linalg_eigh", "2.14.0"): KERNEL,
        ("aten::linalg_svd", "2.9.1"): SILENT | {"fixed_in": "2.14.0"},
        ("aten::linalg_svd", "2.14.0"): COMPOSITE,
        "aten::_slow_conv2d_forward": RAISES,
    }
)
LONG = "out = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)"


def step() -> OpGraph:
    wide = spec((64, 64), "float64")
    layers = tuple(
        at(12, "h = self.up(x)", f"layers.{layer}.mlp", "nets/gp.py") for layer in (0, 1)
    )
    eigh = (at(41, "values, vectors = torch.linalg.eigh(k)", "kernel", "nets/gp.py"),)
    return graph(
        call("aten::mm", spec((64, 32)), spec((32, 64)), calls=24, locations=layers),
        call("aten::t", spec((64, 32)), calls=24, locations=layers),
        call(
            "aten::_to_copy", spec((64, 64)), outputs=(wide,), locations=(at(49, "a = a.double()"),)
        ),
        call("aten::mul.Tensor", wide, wide, outputs=(wide,), locations=(at(50, "z = a * b"),)),
        call("aten::_linalg_eigh", spec((64, 64)), phase="loss", locations=eigh),
        call("aten::_linalg_eigh", spec((128, 128)), phase="loss", calls=2, locations=eigh),
        call(
            "aten::linalg_svd",
            spec((8, 64, 64), "bfloat16"),
            phase="loss",
            locations=(
                Location(file="nets/gp.py", line=43, code=LONG, library="gpytorch/kernels.py:210"),
            ),
        ),
        call("aten::_slow_conv2d_forward", via="aten::conv2d", locations=()),
        call(
            "torchvision::nms",
            spec((100, 4)),
            spec((100,)),
            locations=(at(60, "keep = nms(b, s)"),),
        ),
        call(
            "aten::_foreach_add_.List",
            *[spec((64, 64), name=f"self[{n}]") for n in range(3)],
            *[spec((64,), name=f"other[{n}]") for n in range(3)],
            spec((2, 2)),
            spec((), "int64", device="cpu"),
            spec((3,), "complex64"),
            phase="optimizer",
            attributes={"alpha": 1, "beta": "inf"},
            locations=(at(70, "optimizer.step()"),),
        ),
        name="ExactGP",
        source="nets/gp.py",
        entry="ExactGP",
        capture=Capture(
            method="meta",
            complete=False,
            notes=("inputs inferred from forward(x): x=64x32:float32", "AdamW found in the file"),
            unseen=(Unseen(what="the branch at nets/gp.py:33", reason="it depends on values"),),
        ),
    )


def report(*targets: Target) -> Report:
    """One model with every status, one that crashed, one file that is missing."""
    chosen = targets or (TORCH_29,)
    crashed = NotCaptured(
        name="BigNet",
        entry="BigNet",
        message="the process was killed by SIGSEGV while the step was captured",
        remedy="Run one step of it in plain Python to see the failure.",
        attempts=(Attempt(method="meta", reason="an op has no meta kernel"),),
        said=("Fatal Python error: Segmentation fault",),
    )
    missing = NotCaptured(
        name="gone.py",
        entry="",
        message="gone.py: no such file",
        remedy="check the path; it is relative to the current directory",
        unreadable=True,
    )
    captured = Captured(name="ExactGP", entry="ExactGP", graphs={"profile": step()})
    models = (
        judge_model(captured, chosen, {target.id: "profile" for target in chosen}, KNOWN),
        model_without_graph(crashed, "nets/big.py", "train"),
        model_without_graph(missing, "gone.py", "auto"),
    )
    return assembled(chosen, *models)


def clean_report() -> Report:
    """Nothing to complain about."""
    model = Captured(
        name="Net", entry="Net", graphs={"p": graph(call("aten::mm"), call("aten::t"))}
    )
    return assembled((TORCH_29,), judge_model(model, (TORCH_29,), {TORCH_29.id: "p"}, KNOWN))


def whole_report() -> Report:
    """Steps that part from the CPU, and batch sizes until memory ends."""
    [model] = clean_report().models
    place = at(12, "h = self.up(x)", "layers.0.mlp")
    wrong = Divergence(
        op="aten::mm",
        phase="backward",
        step=2,
        kind="wrong",
        message="relative error 0.01, the CPU's own is 1e-07",
        location=place,
        error=0.01,
        cpu_error=1e-7,
    )
    run = Accumulated(
        device="mps",
        asked=3,
        steps=2,
        ops=214,
        compared=210,
        losses=(
            StepLoss(cpu=1.5, raised=1.50000001, device=1.5),
            StepLoss(cpu=1.25, raised=1.24999999, device=None),
        ),
        first=wrong,
        first_nan=msgspec.structs.replace(
            wrong, op="aten::exp", kind="nan", message="infinity or NaN in 3 elements"
        ),
        drift=msgspec.structs.replace(wrong, kind="drift", step=1, phase="forward"),
        ended=msgspec.structs.replace(
            wrong, op="aten::add_", phase="optimizer", step=3, kind="crash", message="SIGABRT"
        ),
        worst={"forward": 1.5, "backward": 839.0},
        incomplete="interrupted",
    )
    points = tuple(
        BatchPoint(
            batch=batch,
            step_s=seconds,
            p10_s=0.9 * seconds,
            p90_s=1.2 * seconds,
            spread=spread,
            samples=50,
            peak_bytes=batch << 21,
        )
        for batch, seconds, spread in ((8, 0.0008, 0.02), (16, 0.0012, 0.01), (64, 1.5, 0.25))
    )
    sweep = BatchSweep(
        device="mps",
        asked=(8, 16, 64, 128),
        points=points,
        best=16,
        ended="batch 128: out of memory",
        notes=("the batch is dimension 0 of the inputs, 8 samples in the file",),
    )
    walked = with_whole(model, Whole(accumulated=run, batches=sweep), TORCH_29.id)
    return assembled((TORCH_29,), walked)


def assembled(targets: tuple[Target, ...], *models: ModelReport) -> Report:
    return Report(
        tool={"name": "opscan", "version": "0.1.0"},
        environment={"python": "3.11.7", "notes": ["judged for the newest release known"]},
        targets=targets,
        models=models,
        summary=summarize(models),
        exit_code=exit_code(models, Gate()),
    )


def simulated_report() -> Report:
    """A model that the simulator agreed with, differed from and could not tell about."""
    model = clean_report().models[0]
    results = {
        "aten::mm": {"reason": "not executable: no interpreter for a method"},
        "aten::t": {"reason": "output 0: 3 of 9 elements fail"},
    }

    def simulated(call: OpCall) -> Measurement:
        status: Status = "unknown" if call.op == "aten::mm" else "wrong"
        device = "metal-sim (Apple M2, torch 2.9.1, macOS 15.5 (imitated))"
        return Measurement(device=device, status=status, detail=results[call.op])

    return assembled((TORCH_29,), with_simulation(model, TORCH_29, simulated))


BOTH = (TORCH_29, TORCH_214)


def timed_report() -> Report:
    """The first model after a device has run it, timed most of it, and lost once."""

    def lookup(one: OpCall) -> Measurement | None:
        return _MEASURED.get(one.op)

    bare = report()
    model = with_measurements(
        bare.models[0], "cuda", lookup, None, step_of=TORCH_29.id, variants=_in_half
    )
    return assembled((TORCH_29,), model)


def _in_half(one: OpCall) -> tuple[Variant, ...]:
    if one.op != "aten::mm":
        return ()
    reason = "NaN or infinity appears in output 0: 1 of 24 elements"
    half, brain = _timed("nan", 2e-6, 0.0, reason=reason), _timed("native", 2.5e-6, 40e-6)
    return (
        Variant(dtype="float16", measurement=half, base_error=1.2e-7, overflows=1),
        Variant(dtype="bfloat16", measurement=brain, error=3.9e-3, base_error=1.2e-7, speedup=1.6),
    )


def _timed(status: Status, device_s: float, cpu_s: float, **detail: Any) -> Measurement:
    noisy = "timings vary much on the CPU" if cpu_s == 1e-6 else ""
    timing = {
        "device": {"median_s": device_s, "first_s": device_s + 0.02},
        "cpu": {"median_s": cpu_s},
        "warning": noisy,
    }
    return Measurement(device=_DEVICE, status=status, detail={"timing": timing, **detail})


_DEVICE = "cuda (NVIDIA H200, torch 2.13.0, Linux)"
_MEASURED = {
    "aten::mm": _timed("native", 4e-6, 12.5e-6),
    "aten::_to_copy": _timed("native", 3e-6, 1e-6),
    "aten::mul.Tensor": _timed(
        "slow",
        25e-6,
        5e-6,
        reason="takes 5 times as long as on the CPU (25 µs instead of 5 µs); the device wins from "
        "1,048,576 elements on (256 times the batch)",
    ),
    "aten::_linalg_eigh": _timed(
        "fallback",
        1.5e-3,
        1.1e-3,
        reason="runs on the CPU: aten::_linalg_eigh; a call takes 1.5 ms with waiting for the "
        "device and copying 16.4 kB out and 16.6 kB back, 1.1 ms on the CPU alone",
    ),
    "aten::linalg_svd": Measurement(
        device=_DEVICE, status="crash", detail={"reason": "ends the process with SIGABRT"}
    ),
}
