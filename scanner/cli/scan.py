"""`opscan scan MODEL...`: capture, judge, report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scanner.cli.accepted import baseline_options, settings_options
from scanner.cli.completers import files, targets
from scanner.cli.messages import interruptible, progress, say
from scanner.cli.view import gate_options, show, view_options
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.host import Host
    from scanner.pipeline import Plan
    from scanner.records import Target
    from scanner.revision import Revision
    from scanner.settings import Settings

__all__ = ["command", "plan_of"]

_EPILOG = """\b
Exit codes:
  0  complete scan, nothing at or above --fail-on
  1  blocking findings
  2  opscan could not do its job: usage, settings, unreadable file, internal error
  3  incomplete: a model was not captured, or an op is neither proven nor disproven
"""


@click.command("scan", short_help="Judge every op of a model's step for a target.", epilog=_EPILOG)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, shell_complete=files)
@click.option(
    "--target",
    "-t",
    multiple=True,
    metavar="SPEC",
    shell_complete=targets,
    help="Release and machine to judge for, as torch==2.9.1,macos=15.5. Repeatable. "
    "Default: this machine if it is an Apple-silicon Mac with torch, else the newest release.",
)
@click.option("--mode", type=click.Choice(["auto", "train", "infer"]), help="Step to capture.")
@click.option("--static", is_flag=True, help="Read files or directories; run nothing.")
@click.option("--inputs", metavar="SPEC", help='As "x=1x3x224x224:float32".')
@click.option(
    "--device",
    metavar="NAME",
    help="auto (mps on a Mac, else none), mps, metal-sim, cuda, cpu, none, or drill:FAULT=OP.",
)
@click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    help="Limit for loading a file and for each model in it (default 120).",
)
@click.option("--stress", is_flag=True, help="Also run adversarial values: NaN, huge, denormal.")
@click.option(
    "--ulp",
    type=click.Choice(["nearest", "worst"]),
    default="nearest",
    help="worst (metal-sim only): also run approximate functions at the ends of their error.",
)
@click.option("--timing", is_flag=True, help="Also time each op on the device and on the CPU.")
@click.option(
    "--autocast",
    metavar="DTYPES",
    help="Also run each op as autocast would: float16, bfloat16 or float16,bfloat16.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    metavar="N",
    help="Also run N whole steps on the device beside the CPU: where do they part?",
)
@click.option(
    "--batch",
    metavar="N,N,...",
    help="Also time whole steps on the device at these batch sizes, as 8,16,32,64.",
)
@click.option("--fresh", is_flag=True, help="Run again what an earlier scan has measured.")
@click.option(
    "--repro",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a script and an issue text for each op that the device fails.",
)
@gate_options
@baseline_options
@settings_options
@view_options
def command(models: tuple[str, ...], static: bool, **flags: Any) -> int:
    """Capture one step of each MODEL and judge every op of it for the target.

    MODEL is file.py, file.py:name, package.module:name or a directory. The file is run in a child
    process.
    """
    if static:
        from scanner.cli.static import run_static

        return run_static(models, flags)
    return _scan(models, flags)


def _scan(models: tuple[str, ...], flags: dict[str, Any]) -> int:
    from opdb import query
    from scanner.cli.accepted import accept, comments_of, known_before, load
    from scanner.cli.devices import Messages
    from scanner.cli.output import destinations
    from scanner.pipeline import scan

    how = {name: bool(flags.pop(name)) for name in ("stress", "timing", "fresh")}
    more = {name: flags.pop(name) for name in ("repro", "autocast", "steps", "batch", "ulp")}
    view = {name: flags.pop(name) for name in ("output", "report", "quiet", "verbose", "color")}
    settings = load(flags)
    view["format"] = settings.format
    destinations(settings.format, view["output"], view["report"])  # before the scan, not after it
    plan = plan_of(models, settings, how, more)
    with interruptible(), progress(quiet=view["quiet"]) as on_capture:
        known = known_before(
            settings.baseline,
            flags["diff_against"],
            os.environ,
            lambda files: scan(_at(files, plan), query, on_capture).report,
        )
        result = scan(plan, query, on_capture, Messages(quiet=view["quiet"]))
    say(result, settings, verbose=view["verbose"])
    report = accept(result.report, settings, known, comments_of(result.report))
    show(report, view)
    return report.exit_code


def _at(files: Revision, plan: Plan) -> Plan:
    """The same scan of a revision's files."""
    from dataclasses import replace

    environ = {**plan.launch.environ}
    if "PYTHONPATH" in environ:
        environ["PYTHONPATH"] = files.moved(environ["PYTHONPATH"])
    return replace(
        plan,
        arguments=tuple(files.moved(argument) for argument in plan.arguments),
        cwd=files.cwd,
        launch=replace(plan.launch, environ=environ),
        repro=None,
    )


def plan_of(
    models: tuple[str, ...], settings: Settings, how: dict[str, bool], more: dict[str, Any]
) -> Plan:
    """A scan as the options and settings say."""
    from scanner.capture.client import Launch
    from scanner.cli.devices import choose_device, kept, simulated_target
    from scanner.cli.targets import choose_targets
    from scanner.judge.gate import Gate
    from scanner.locate.spec import parse_inputs
    from scanner.pipeline import Plan
    from scanner.probe.keeping import Keeping

    if settings.inputs is not None:
        parse_inputs(settings.inputs)
    host = _host_with_torch()
    spec, named = simulated_target(settings.device, settings.target)
    targets, notes = choose_targets(named, host)
    device, device_target = choose_device(spec, host, targets)
    on_device = _on_device(device, targets, how, more)
    return Plan(
        arguments=models,
        cwd=Path.cwd(),
        targets=targets,
        mode=settings.mode,
        inputs=settings.inputs,
        entry=settings.entry,
        gate=Gate(fail_on=settings.fail_on, allow_incomplete=settings.allow_incomplete),
        launch=Launch(timeout_s=settings.timeout, environ=dict(os.environ)),
        device=device,
        device_required=settings.device != "auto",
        device_target=device_target,
        keep=kept(fresh=how["fresh"]) if device is not None else Keeping(),
        environment=_environment(host, device),
        notes=notes,
        **on_device,
    )


def _host_with_torch() -> Host:
    from scanner.host import this_host

    host = this_host(os.environ)
    if host.torch is None:
        raise UsageError(
            "torch is not installed in the Python that runs opscan",
            remedy="Install opscan where your project runs, or `pip install opscan-metal[torch]`.",
        )
    return host


def _on_device(
    device: str | None, targets: tuple[Target, ...], how: dict[str, bool], more: dict[str, Any]
) -> dict[str, Any]:
    """What a plan says of running on the device; refuses what needs another one, or any."""
    from scanner.backends.sim_spec import NAME as SIMULATOR
    from scanner.cli.devices import (
        choose_autocast,
        choose_ulp,
        choose_whole,
        claim_repro,
        require_device,
        require_simulated,
    )

    if device == SIMULATOR:
        require_simulated(targets, timing=how["timing"])
    require_device((f"--{name}" for name, given in how.items() if given), device)
    found = {
        "autocast": choose_autocast(more["autocast"], device),
        "batches": choose_whole(more["steps"], more["batch"], device),
        "steps": more["steps"] or 0,
    }
    probed = {name: True for name in ("stress", "timing") if how[name]}
    found["probe_options"] = probed | choose_ulp(more["ulp"], device)
    claim_repro(more["repro"], device)
    return found | {"repro": more["repro"]}


def _environment(host: Host, device: str | None) -> dict[str, Any]:
    return {
        "device": device,
        "python": host.python,
        "system": host.system,
        "machine": host.machine,
        "torch": host.torch,
    }
