"""`opscan sweep`: every operator of PyTorch's own test database on one device."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scanner.cli.messages import interruptible

if TYPE_CHECKING:
    from scanner.probe.limits import Launch
    from scanner.probe.protocol import Outcome
    from scanner.probe.sweep import Sample, Swept

__all__ = ["command"]

_BAD = frozenset({"crash", "wrong", "nan"})


@click.command("sweep", short_help="Run PyTorch's own samples of every op on a device.")
@click.option("--device", required=True, metavar="NAME", help="mps, cuda, cpu or drill:SPEC.")
@click.option("--ops", multiple=True, metavar="NAME", help="OpInfo name; default: all. Repeatable.")
@click.option("--dtype", multiple=True, default=("float32",), show_default=True)
@click.option("--samples", type=click.IntRange(1), default=5, show_default=True)
@click.option("--no-gradients", is_flag=True, help="Forward only.")
@click.option("--fresh", is_flag=True, help="Run again what an earlier scan has measured.")
@click.option("--stress", is_flag=True, help="Also run adversarial values: NaN, huge, denormal.")
@click.option("--journal", type=click.Path(path_type=Path), help="Resume from and append to FILE.")
@click.option(
    "--repro",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a script and an issue text for each configuration that the device fails.",
)
@click.option("-o", "--output", metavar="FILE", help="One outcome a line, JSON.")
def command(device: str, **options: Any) -> int:
    """Run each configuration on the device against a CPU reference, and count what happens.

    Exits with 1 when an op crashes or computes something wrong, with 3 when one stays unknown or
    was not reached before Ctrl-C.
    """
    from scanner.backends.open import check_device_spec
    from scanner.cli.devices import claim_repro
    from scanner.cli.output import file_to_write, write
    from scanner.probe.sweep import op_infos, summarize

    check_device_spec(device)
    output = file_to_write(options["output"]) if options["output"] else None
    claim_repro(options["repro"], device)
    names = [name for name in options["ops"] if name != "all"]
    with interruptible():
        samples = op_infos(names, options["dtype"], options["samples"], os.environ)
        outcomes = _probe(samples, device, options)
    swept = summarize(samples, outcomes)
    if output:
        write(_lines(samples, outcomes), output)
    click.echo(_text(swept, device))
    return _exit_code(swept)


def _probe(samples: list[Sample], device: str, options: dict[str, Any]) -> dict[str, Outcome]:
    from scanner.cli.devices import Messages, store_path
    from scanner.probe.observer import Remembering
    from scanner.probe.outcomes import measurement_of
    from scanner.probe.plan import config_key
    from scanner.probe.reproduce import Reproduction, failures, write_repros
    from scanner.probe.session import opened
    from scanner.probe.supervisor import probe

    calls = [sample.call for sample in samples]
    watch = Remembering(Messages(quiet=False))
    # As a scan spells it, which then need not run these configurations again.
    chosen = {"gradients": False} if options["no_gradients"] else {}
    chosen |= {"stress": True} if options["stress"] else {}
    with ExitStack() as stack:
        found = probe(
            calls,
            device,
            chosen,
            launch=_launch(device),
            journal=options["journal"],
            store=opened(stack, store_path(), watch),
            fresh=options["fresh"],
            observer=watch,
        )
        outcomes: dict[str, Outcome] = {}
        try:
            for outcome in found:
                outcomes[outcome.key] = outcome
        except KeyboardInterrupt:
            if watch.facts is None:
                raise
            watch.interrupted()
    if options["repro"] and watch.facts is not None:
        check = not watch.was_interrupted
        how = Reproduction(folder=options["repro"], device=device, environ=os.environ, check=check)
        facts = watch.facts
        measured = {key: measurement_of(outcome, facts) for key, outcome in outcomes.items()}
        ran = [call for call in calls if config_key(call) in measured]
        write_repros(failures(ran, measured), facts, how, watch)
    return outcomes


def _launch(device: str) -> Launch:
    """As a scan starts its workers: without the fallback variable, unless the user has set it."""
    from scanner.backends.mps_facts import fallback_is_on
    from scanner.backends.open import reads_fallback_variable
    from scanner.probe.limits import Launch

    without = reads_fallback_variable(device) and not fallback_is_on(os.environ)
    return Launch(environ=dict(os.environ), fallback=False if without else None)


def _lines(samples: list[Sample], outcomes: dict[str, Outcome]) -> str:
    import msgspec

    from scanner.probe.plan import config_key

    rows = (
        {"name": sample.name, "call": sample.call, "outcome": outcomes.get(config_key(sample.call))}
        for sample in samples
    )
    return "".join(f"{msgspec.json.encode(row).decode()}\n" for row in rows)


def _text(swept: Swept, device: str) -> str:
    total = sum(swept.by_status.values())
    counts = ", ".join(f"{count} {status}" for status, count in swept.by_status.items())
    bad = [f"  {status:<8} {name}" for name, status in swept.by_name.items() if status in _BAD]
    entries = "1 entry" if len(swept.by_name) == 1 else f"{len(swept.by_name)} entries"
    head = f"{total} configurations of {entries} on {device}: {counts or 'none'}"
    missed = [f"interrupted: {swept.missing} more were not run"] if swept.missing else []
    return "\n".join([head, *missed, *bad])


def _exit_code(swept: Swept) -> int:
    if _BAD & swept.by_status.keys():
        return 1
    return 3 if swept.missing or "unknown" in swept.by_status else 0
