"""A script and an issue text for each configuration that a device fails, checked by running it.

The scripts are written by a process of its own, since that takes torch (`repro_worker`), and run in
one process each. Whatever becomes of these costs one script at most.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from scanner.backends.interface import DeviceFacts
from scanner.children import importable
from scanner.errors import UsageError
from scanner.probe.issue import Check, Failure, issue_text
from scanner.probe.observer import Observer
from scanner.probe.outcome import CaseResult
from scanner.probe.plan import config_key
from scanner.probe.protocol import Death
from scanner.probe.repro_worker import Job
from scanner.probe.script_run import Ended, check_script, run_for
from scanner.records import Measurement, OpCall

__all__ = ["Repro", "Reproduction", "claim_folder", "failures", "repro_name", "write_repros"]

_FAILING = frozenset({"wrong", "nan", "crash", "unsupported"})
"""What is slow or falls back has been found right; a wrong result is never reported as such."""
_OURS = re.compile(r"[\w.-]+-[0-9a-f]{8}\.(py|md)")
_WRITER = (sys.executable, "-m", "scanner.probe.repro_worker")
_LISTED = 3


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Where the files go and how the scripts are run."""

    folder: Path
    device: str
    """As on the command line; the scripts run on it unless they are told another."""
    environ: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = 120.0
    """Longest that a script may run."""
    start_s: float = 120.0
    """Longest that the writer may take to import torch."""
    each_s: float = 30.0
    """So much longer for each script."""
    check: bool = True
    """Whether to run the scripts."""
    label: str = ""
    """What the names of the files begin with, where several devices share a folder."""

    def name(self, call: OpCall) -> str:
        """What the files about a configuration are called."""
        plain = repro_name(call)
        return f"{self.label}-{plain}" if self.label else plain


@dataclass(frozen=True, kw_only=True)
class Repro:
    """The files about one configuration, and what running the script showed."""

    name: str
    check: Check


def repro_name(call: OpCall) -> str:
    """`aten-add-Tensor-float32-1a2b3c4d`: the same for the same configuration, whenever found."""
    plain = re.sub(r"\W+", "-", call.op)
    dtype = call.inputs[0].dtype if call.inputs else "none"
    return f"{plain}-{dtype}-{config_key(call)[:8]}"


def claim_folder(folder: Path) -> None:
    """Make the folder, or see that it can be used; raises `UsageError`.

    It may hold nothing but files of an earlier scan, which are replaced.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = sorted(p.name for p in folder.iterdir() if not _OURS.fullmatch(p.name))
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"--repro {folder}: cannot be written: {error.strerror}",
            remedy="Name a directory that can be made or written.",
        ) from None
    if others:
        more = f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
        raise UsageError(
            f"--repro {folder}: it holds other files ({', '.join(others[:_LISTED])}{more})",
            remedy="Name a directory that is new or empty.",
        )


def failures(calls: Iterable[OpCall], measured: Mapping[str, Measurement]) -> list[Failure]:
    """The distinct configurations that a device failed, in order of first appearance.

    `measured` by `config_key`.
    """
    found: dict[str, Failure] = {}
    for call in calls:
        key = config_key(call)
        measurement = measured.get(key)
        if measurement is not None and measurement.status in _FAILING and key not in found:
            found[key] = _failure(call, measurement)
    return list(found.values())


def _failure(call: OpCall, measurement: Measurement) -> Failure:
    said = {"op": call.op, **measurement.detail, "status": measurement.status}
    death = measurement.detail.get("death")
    return Failure(
        call=call,
        result=msgspec.convert(said, CaseResult),
        death=msgspec.convert(death, Death) if death else None,
    )


def write_repros(
    found: Sequence[Failure], facts: DeviceFacts, how: Reproduction, watch: Observer
) -> list[Repro]:
    """Write NAME.py and NAME.md for each failure, and tell `watch` what each script showed.

    After Ctrl-C the rest is written unchecked. A file that cannot be written is said to be so and
    costs nothing else.
    """
    sources = _sources(found, how)
    repros = []
    interrupted = not how.check
    for failure in found:
        name = how.name(failure.call)
        source = sources[name]
        check = Check(status="not checked", message="the scan was interrupted")
        try:
            _save(how.folder / f"{name}.py", source.text)
            if source.reason:
                check = Check(status="no script", message=source.reason)
            elif not interrupted:
                script = how.folder.resolve() / f"{name}.py"
                check = check_script(script, failure, importable(how.environ), how.limit_s)
        except KeyboardInterrupt:
            interrupted = True
        except OSError as error:
            check = Check(status="no script", message=f"it cannot be written: {error.strerror}")
        with suppress(OSError):
            issue = issue_text(failure, facts, how.device, source.text, check)
            _save(how.folder / f"{name}.md", issue)
        watch.notice(f"{how.folder / name}.py: {check.status}: {check.message}")
        repros.append(Repro(name=name, check=check))
    return repros


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A script, or why there is none."""

    text: str = ""
    reason: str = ""


def _sources(found: Sequence[Failure], how: Reproduction) -> dict[str, _Source]:
    """By name. A writer that dies is started again for those after the one it died of."""
    jobs = [
        Job(name=how.name(each.call), device=how.device, call=each.call, result=each.result)
        for each in found
    ]
    with tempfile.TemporaryDirectory(prefix="opscan-repro-") as scratch:
        written: dict[str, _Source] = {}
        while left := [job for job in jobs if job.name not in written]:
            ended = _round(left, how, Path(scratch))
            written |= _collected(left, Path(scratch))
            if len(written) < len(jobs):
                blamed = next(job.name for job in left if job.name not in written)
                written[blamed] = _Source(reason=_lost(ended))
        return written


def _round(jobs: Sequence[Job], how: Reproduction, scratch: Path) -> Ended:
    lines = scratch / "jobs.jsonl"
    lines.write_bytes(b"".join(msgspec.json.encode(job) + b"\n" for job in jobs))
    limit = how.start_s + how.each_s * len(jobs)
    return run_for((*_WRITER, str(lines), str(scratch)), importable(how.environ), limit)


def _collected(jobs: Sequence[Job], scratch: Path) -> dict[str, _Source]:
    found = {}
    for job in jobs:
        script, reason = scratch / f"{job.name}.py", scratch / f"{job.name}.txt"
        if script.exists():
            found[job.name] = _Source(text=script.read_text(encoding="utf-8"))
        elif reason.exists():
            found[job.name] = _Source(reason=reason.read_text(encoding="utf-8"))
    return found


def _lost(ended: Ended) -> str:
    last = next(reversed(ended.printed.splitlines()), "it printed nothing")
    how = "took too long" if ended.returncode is None else f"ended with {ended.returncode}"
    return f"the process that writes it {how}: {last}"


def _save(path: Path, text: str) -> None:
    """Replace the file, or remove one of an earlier scan when there is nothing to write."""
    if text:
        path.write_text(text, encoding="utf-8")
    else:
        path.unlink(missing_ok=True)
