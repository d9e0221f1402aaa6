"""The stages of a scan, in order: locate, capture, judge, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from scanner import __version__
from scanner.backends.mps_facts import fallback_variables
from scanner.backends.sim_spec import NAME as SIMULATOR
from scanner.backends.sim_spec import is_simulator, sim_label
from scanner.capture.client import Captured, Launch, NotCaptured, SourceCapture, capture_source
from scanner.capture.protocol import Job, JobSource, Profile
from scanner.errors import OpscanError
from scanner.judge.gate import Gate, exit_code, summarize
from scanner.judge.interface import Knowledge
from scanner.judge.measured import call_of, with_measurements
from scanner.judge.models import judge_model, model_without_graph
from scanner.judge.profile import profiles_for
from scanner.judge.whole import with_whole
from scanner.locate.interface import Source
from scanner.locate.resolve import resolve
from scanner.probe.autocast import NO_VARIANTS, Variants, variants_of
from scanner.probe.keeping import Keeping
from scanner.probe.measure import measure
from scanner.probe.observer import Observer, Remembering
from scanner.probe.plan import config_key
from scanner.probe.reproduce import Reproduction, failures, write_repros
from scanner.probe.supervisor import DeviceError
from scanner.probe.whole import Whole
from scanner.records import Measurement, ModelReport, OpCall, Report, SourceScan, Target, Variant
from scanner.simulate import simulate
from scanner.source.of_models import source_of_models
from scanner.walk import whole_steps

__all__ = ["Plan", "Scan", "scan"]

_PARALLEL_CHILDREN = 2
"""Each holds a torch of its own in memory."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One scan, completely described."""

    arguments: tuple[str, ...]
    """MODEL arguments as typed."""
    cwd: Path
    targets: tuple[Target, ...]
    mode: Literal["auto", "train", "infer"] = "auto"
    inputs: str | None = None
    entry: str | None = None
    gate: Gate = field(default_factory=Gate)
    launch: Launch = field(default_factory=Launch)
    device: str | None = None
    """Device spec to run every configuration on; None runs nothing, `metal-sim` simulates every
    target."""
    probe_options: Mapping[str, Any] = field(default_factory=dict)
    """How the device is probed: `stress`, `timing`."""
    autocast: tuple[str, ...] = ()
    """Half-precision dtypes in which what autocast casts is run as well."""
    keep: Keeping = field(default_factory=Keeping)
    """Where measurements are kept from scan to scan, and while one is not finished."""
    repro: Path | None = None
    """Folder for scripts and issue texts about what the device fails; `claim_folder` made it."""
    device_required: bool = True
    """False when a device that cannot be used is no error but a note."""
    device_target: str | None = None
    """Id of the target that the device is."""
    steps: int = 0
    """Whole steps to run on the device beside the CPU."""
    batches: tuple[int, ...] = ()
    """Batch sizes to time whole steps at, in rising order."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Facts about this machine, for the report."""
    notes: tuple[str, ...] = ()
    """What was assumed before the scan began."""


@dataclass(frozen=True, kw_only=True)
class Scan:
    """The report, and what is said to the user beside it."""

    report: Report
    captures: tuple[SourceCapture, ...]
    tracebacks: tuple[str, ...] = ()
    """Errors of opscan's own while whole steps were run."""


def scan(
    plan: Plan,
    knowledge: Knowledge,
    on_capture: Callable[[str], object] = lambda _: None,
    observer: Observer | None = None,
) -> Scan:
    """Run every stage.

    `on_capture` hears the name of each source before it is captured, from any thread. Raises the
    `OpscanError` of the first argument when none of them names anything to scan.
    """
    located = _locate(plan.arguments, plan.cwd)
    profile_of, profiles = profiles_for(plan.targets, knowledge)
    captures = _capture(located, plan, profiles, on_capture)
    models = [
        _judged(model, capture, plan, profile_of, knowledge)
        for capture in captures
        for model in capture.models
    ]
    notes: list[str] = []
    wholes: list[Whole] = []
    if plan.device is not None:
        try:
            run = _simulated if plan.device == SIMULATOR else _probed
            models = run(models, plan, plan.device, observer)
            chosen = profile_of[plan.device_target or plan.targets[0].id]
            profile = tuple(each for each in profiles if each.id == chosen)
            wholes = whole_steps(
                plan, plan.device, captures, [_job_of(one, plan, profile) for one in located]
            )
        except DeviceError as error:
            if plan.device_required:
                raise
            notes.append(f"no op was run on {plan.device}: {error.message}")
    if wholes:
        models = [
            with_whole(model, whole, plan.device_target)
            for model, whole in zip(models, wholes, strict=True)
        ]
    tracebacks = tuple(whole.traceback for whole in wholes if whole.traceback)
    source = source_of_models(located, models, plan.targets, plan.cwd)
    report = _report(plan, captures, models, notes, source)
    return Scan(report=report, captures=captures, tracebacks=tracebacks)


def _locate(arguments: Sequence[str], cwd: Path) -> list[Source | SourceCapture]:
    """Sources to capture, each once, and an outcome for every argument that names none."""
    located: list[Source | SourceCapture] = []
    errors: list[OpscanError] = []
    for argument in arguments:
        try:
            located += [found for found in resolve(argument, cwd) if found not in located]
        except OpscanError as error:
            errors.append(error)
            located.append(_missing(argument, error))
    if len(errors) == len(located):
        raise errors[0]
    return located


def _missing(argument: str, error: OpscanError) -> SourceCapture:
    failure = NotCaptured(
        name=argument, entry="", message=error.message, remedy=error.remedy, unreadable=True
    )
    return SourceCapture(argument=argument, models=(failure,))


def _job(source: Source, plan: Plan, profiles: tuple[Profile, ...]) -> Job:
    return Job(
        source=JobSource(
            argument=source.argument,
            path=str(source.path) if source.path else None,
            module=source.module,
            name=source.name,
        ),
        cwd=str(plan.cwd),
        mode=plan.mode,
        inputs=plan.inputs,
        entry=plan.entry,
        profiles=profiles,
        notes=source.notes,
    )


def _job_of(
    source: Source | SourceCapture, plan: Plan, profiles: tuple[Profile, ...]
) -> Job | None:
    return _job(source, plan, profiles) if isinstance(source, Source) else None


def _capture(
    located: Sequence[Source | SourceCapture],
    plan: Plan,
    profiles: tuple[Profile, ...],
    on_capture: Callable[[str], object],
) -> tuple[SourceCapture, ...]:
    def run(source: Source | SourceCapture) -> SourceCapture:
        if isinstance(source, SourceCapture):
            return source
        on_capture(source.argument)
        return capture_source(_job(source, plan, profiles), plan.launch)

    with ThreadPoolExecutor(_PARALLEL_CHILDREN) as pool:
        futures = [pool.submit(run, source) for source in located]
        try:
            return tuple(future.result() for future in futures)
        except BaseException:
            plan.launch.stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _judged(
    model: Captured | NotCaptured,
    capture: SourceCapture,
    plan: Plan,
    profile_of: Mapping[str, str],
    knowledge: Knowledge,
) -> ModelReport:
    if isinstance(model, NotCaptured):
        return model_without_graph(model, capture.argument, plan.mode)
    return judge_model(model, plan.targets, profile_of, knowledge)


def _probed(
    models: Sequence[ModelReport], plan: Plan, device: str, observer: Observer | None
) -> list[ModelReport]:
    """Every configuration of every model on the device, each once."""
    calls = [call_of(row) for model in models for row in model.ops]
    environ = plan.launch.environ
    fallback = next((t.fallback for t in plan.targets if t.id == plan.device_target), None)
    variants = variants_of(calls, plan.autocast, environ)
    measured = _measured(calls, device, plan, observer, fallback, variants)
    step_of = plan.device_target or plan.targets[0].id

    def lookup(call: OpCall) -> Measurement | None:
        return measured.get(config_key(call))

    def in_half(call: OpCall) -> tuple[Variant, ...]:
        return variants.of(call, measured)

    return [
        with_measurements(
            model, device, lookup, plan.device_target, step_of=step_of, variants=in_half
        )
        for model in models
    ]


def _simulated(
    models: Sequence[ModelReport], plan: Plan, _device: str, observer: Observer | None
) -> list[ModelReport]:
    """Every target on its own release in the simulator."""

    def run(calls: Sequence[OpCall], device: str) -> Mapping[str, Measurement]:
        return _measured(calls, device, plan, observer)

    return simulate(models, plan.targets, run)


def _measured(
    calls: Sequence[OpCall],
    device: str,
    plan: Plan,
    observer: Observer | None,
    fallback: bool | None = None,
    variants: Variants = NO_VARIANTS,
) -> Mapping[str, Measurement]:
    """What the device does, and a script for each failure where that is asked for."""
    watch = Remembering(observer or Observer())
    environ, options = plan.launch.environ, plan.probe_options
    every = [*calls, *variants.to_run()]
    keep = plan.keep.of_scan(device, every, options)
    measured = measure(calls, device, environ, watch, options, keep, fallback, variants)
    if plan.repro is not None and watch.facts is not None:
        how = Reproduction(
            folder=plan.repro,
            device=device,
            environ={**environ, **fallback_variables(fallback)},
            check=not watch.was_interrupted,
            label=sim_label(device) if is_simulator(device) else "",
        )
        write_repros(failures(every, measured), watch.facts, how, watch)
    if not watch.was_interrupted:
        keep.finished()
    return measured


def _report(
    plan: Plan,
    captures: Sequence[SourceCapture],
    models: Sequence[ModelReport],
    notes: Sequence[str],
    source: SourceScan | None,
) -> Report:
    said = [f"{capture.argument}: {note}" for capture in captures for note in capture.notes]
    return Report(
        tool={"name": "opscan", "version": __version__},
        environment={**plan.environment, "notes": [*plan.notes, *said, *notes]},
        targets=plan.targets,
        models=tuple(models),
        source=source,
        summary=summarize(models, source),
        exit_code=exit_code(models, plan.gate, source),
    )
