"""`opscan sim prepare|list|remove|op|diff`: releases of torch that can be simulated."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from scanner.cli.messages import interruptible

if TYPE_CHECKING:
    import msgspec

    from scanner.records import Target
    from scanner.sim.prepare.news import News

__all__ = ["command"]

_format = click.option("-f", "--format", type=click.Choice(["text", "json"]), default="text")
_UNKNOWN = 3


@click.group("sim", short_help="Simulate torch's MPS backend: prepare releases, look at ops.")
def command() -> None:
    """Run a release's own MPS code without a Mac; see also --device metal-sim."""


@command.command("prepare")
@click.argument("release", metavar="torch==V")
def prepare(release: str) -> int:
    """Download a release's macOS wheel and make it ready, once: some minutes.

    Steps that are done are kept, so an interrupted preparation goes on where it stopped.
    """
    from scanner.sim.prepare.client import prepare_apart

    with interruptible():
        made = prepare_apart(_target(release).version, os.environ, _Told())
    sys.stdout.write(
        f"torch {made.release} is prepared: {made.nbytes / 1e6:,.0f} MB in {made.folder}\n"
        f"from {made.wheel}, sha256 {made.sha256}\n"
    )
    return 0


@command.command("list")
@_format
def list_(format: str) -> int:
    """List what is prepared."""
    from scanner.cli.sim_text import found_text
    from scanner.sim.prepare.release import survey

    found = survey()
    sys.stdout.write(_json(found) if format == "json" else found_text(found))
    return 0


@command.command("remove")
@click.argument("release", metavar="torch==V")
def remove(release: str) -> int:
    """Delete what was prepared of a release; wheels stay in the cache."""
    from scanner.errors import UsageError
    from scanner.sim.prepare import release as prepared

    version = _target(release).version
    known = {found.release: found for found in prepared.survey()}
    if version not in known:
        raise UsageError(
            f"torch {version} is not prepared",
            remedy=f"Prepared: {', '.join(known) or 'nothing'}.",
        )
    prepared.remove(version)
    sys.stdout.write(f"removed {known[version].folder}, {known[version].nbytes / 1e6:,.0f} MB\n")
    return 0


@command.command("op")
@click.argument("name", metavar="OP")
@click.option("--torch", "version", metavar="V", help="Release; default the newest prepared.")
@click.option("--macos", metavar="V", help="System to imitate; default 15.5.")
@click.option("--gpu", metavar="CHIP", help="Chip to imitate; default M2.")
@click.option("--dtype", default="float32", show_default=True, help="Of tensors that name none.")
@click.option("--args", "spec", default="", metavar="SPEC", help='As "4x4:float32[-1,1],dim=0".')
@click.option("--seed", type=int, default=0, show_default=True, help="Of drawn values.")
@click.option(
    "--ulp",
    type=click.Choice(["nearest", "worst"]),
    default="nearest",
    help="worst: also run approximate functions at the ends of their allowed error.",
)
@_format
def op(name: str, version: str | None, format: str, **how: Any) -> int:
    """Call one op, as aten::erfc, and show what the release does and both values.

    Without --args, tensors are drawn over the dtype's whole range. Exits with 3 when the outcome
    is unknown.
    """
    from scanner.cli.op_text import require_known
    from scanner.cli.sim_text import answer_text
    from scanner.sim.study.arguments import known_dtype, parse_arguments
    from scanner.sim.study.ask import ask_op

    op_name = name if "::" in name else f"aten::{name}"
    require_known(op_name)
    dtype = known_dtype(how["dtype"])
    parse_arguments(how["spec"], dtype)
    target = _target(_spelt(version or _newest(), how["macos"], how["gpu"]))
    options = {"args": how["spec"], "dtype": dtype, "seed": how["seed"], "ulp": how["ulp"]}
    with interruptible():
        answer = ask_op(op_name, target, options, os.environ)
    sys.stdout.write(_json(answer) if format == "json" else answer_text(answer))
    return _UNKNOWN if answer.outcome == "unknown" else 0


@command.command("diff")
@click.argument("before", metavar="torch==A")
@click.argument("after", metavar="torch==B")
@click.option("--ops", multiple=True, metavar="NAME", help="OpInfo name; default: all. Repeatable.")
@click.option("--dtype", multiple=True, default=("float32",), show_default=True)
@click.option("--samples", type=click.IntRange(1), default=3, show_default=True)
@_format
def diff(before: str, after: str, format: str, **how: Any) -> int:
    """Run PyTorch's own samples through two releases and show what they treat differently.

    Releases are spelled as targets: torch==2.15.0,macos=26.2,chip=M3.
    """
    from scanner.cli.devices import Messages
    from scanner.cli.sim_text import comparison_text
    from scanner.probe.sweep import op_infos
    from scanner.sim.study.ask import compare_releases

    releases = _target(before), _target(after)
    names = [name for name in how["ops"] if name != "all"]
    with interruptible():
        samples = op_infos(names, how["dtype"], how["samples"], os.environ)
        found = compare_releases(*releases, samples, os.environ, Messages(quiet=False))
    sys.stdout.write(_json(found) if format == "json" else comparison_text(found))
    return 0


def _target(text: str) -> Target:
    """`torch==2.15.0`, `2.15.0`, or a whole target."""
    from scanner.backends.sim_spec import NAME, sim_target

    return sim_target(f"{NAME}:{text}")


def _spelt(version: str, macos: str | None, gpu: str | None) -> str:
    parts = [version, f"macos={macos}" if macos else "", f"chip={gpu}" if gpu else ""]
    return ",".join(part for part in parts if part)


def _newest() -> str:
    from scanner.errors import UsageError
    from scanner.sim.prepare.release import survey

    usable = [found.release for found in survey() if found.state == "usable"]
    if not usable:
        raise UsageError(
            "nothing is prepared for the simulator",
            remedy="Run `opscan sim prepare torch==2.15.0` once, or name a release with --torch.",
        )
    return usable[-1]


def _json(record: msgspec.Struct | list[Any]) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"


class _Told:
    """Steps, and on a terminal the progress of the download, on stderr."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def __call__(self, news: News) -> None:
        from scanner.sim.prepare.news import Progress, Step

        if isinstance(news, Step):
            sys.stderr.write(f"{news.text}\n")
        elif isinstance(news, Progress) and self._live and news.total:
            end = "\n" if news.done == news.total else "\r"
            share = news.done / news.total
            text = f"{news.done / 1e6:,.0f} of {news.total / 1e6:,.0f} MB ({share:.0%})"
            sys.stderr.write(f"{text:<40}{end}")
