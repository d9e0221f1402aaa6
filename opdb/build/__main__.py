"""`python -m opdb.build torch|upstream [--release V]… [--check]`: derives data from wheels.

`python -m opdb.build opinfo [--entry NAME]… [--check]`: from the installed torch.

`python -m opdb.build api [--check]`: from the installed torch, after `torch`.

`python -m opdb.build torch-sim [--release V]… [--macos M]… [--check]`: executes prepared releases.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from pathlib import Path

from opdb import tables
from opdb.build import download, torch_data, upstream
from scanner.errors import OpscanError, UsageError


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Status 1: `--check` finds a difference; 2: it cannot do its job."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except OpscanError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m opdb.build", description=__doc__)
    parser.add_argument("framework", choices=list(_BUILDERS))
    parser.add_argument("--release", action="append", metavar="V", help="only this one; repeatable")
    parser.add_argument("--entry", action="append", help="of OpInfo: only this one; repeatable")
    parser.add_argument("--check", action="store_true", help="compare with the data, write nothing")
    parser.add_argument("--data", type=Path, default=torch_data.FOLDER, help="data folder")
    parser.add_argument(
        "--cache", type=Path, default=download.cache(), help="where wheels are kept"
    )
    parser.add_argument("--jobs", type=int, default=2, help="wheels read at a time, 1.2 GB each")
    parser.add_argument("--macos", action="append", metavar="M", help="torch-sim; repeatable")
    parser.add_argument("--observations", type=Path, help="torch-sim: folder of kept sweeps")
    parser.add_argument("--fresh", action="store_true", help="torch-sim: sweep again")
    parser.add_argument(
        "--as-is", action="store_true", help="torch-sim: fold kept sweeps, of any simulator"
    )
    return parser


def _run(options: argparse.Namespace) -> int:
    releases = list(dict.fromkeys(options.release or torch_data.RELEASES))
    unknown = [release for release in releases if release not in torch_data.RELEASES]
    if unknown:
        raise UsageError(
            f"not among the releases to derive: {', '.join(unknown)}",
            remedy="Add a new release to RELEASES in opdb/build/releases.py.",
        )
    build, source = _BUILDERS[options.framework]
    files = build(options, releases)
    if options.check:
        return _compare(options.data, files, source)
    options.data.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (options.data / name).write_text(content, "utf-8", newline="\n")
    return 0


def _derived(options: argparse.Namespace, releases: list[str]) -> dict[str, str]:
    recorded = torch_data.recorded(options.data)
    jobs = [(release, options.cache, recorded.get(release)) for release in releases]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        derived = pool.map(torch_data.derive_release, jobs, chunksize=1)
    return torch_data.merge(options.data, derived)


def _upstream(options: argparse.Namespace, releases: list[str]) -> dict[str, str]:
    recorded = torch_data.recorded(options.data)
    return {tables.UPSTREAM.file: upstream.derive(releases, options.cache, recorded)}


def _opinfo(options: argparse.Namespace, releases: list[str]) -> dict[str, str]:
    del releases
    from opdb.build import opinfo

    return {tables.OPINFO.file: opinfo.table(_say, frozenset(options.entry or ()))}


def _api(options: argparse.Namespace, releases: list[str]) -> dict[str, str]:
    del releases
    from opdb.build import api

    return {tables.API.file: api.table(options.jobs, _say)}


def _executed(options: argparse.Namespace, releases: list[str]) -> dict[str, str]:
    del releases  # only what is prepared can be executed
    from opdb.build.execution import build

    folder = options.observations or build.default_folder()
    how = {"fresh": options.fresh, "as_is": options.as_is}
    chosen = build.environments(options.release or (), options.macos or ())
    seen = [(each, build.observed(each, folder, _say, **how)) for each in chosen]
    return build.tables_of(options.data, seen)


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201


_BUILDERS = {
    "torch": (_derived, "the wheels say"),
    "upstream": (_upstream, "the wheels say"),
    "opinfo": (_opinfo, "the installed torch reaches"),
    "api": (_api, "the installed torch reaches"),
    "torch-sim": (_executed, "was executed"),
}
"""Framework or kind → what derives its files, and what they are held against."""


def _compare(folder: Path, files: dict[str, str], said: str) -> int:
    wrong = [
        name for name, content in files.items() if torch_data.current(folder / name) != content
    ]
    for name in wrong:
        _say(f"{folder / name}: differs from what {said}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
