"""The text of a bug report about one configuration, as Markdown; nothing here imports torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from scanner.backends.interface import DeviceFacts
from scanner.probe.outcome import CaseResult, Number, OutputResult
from scanner.probe.protocol import Death
from scanner.records import OpCall

__all__ = ["Check", "CheckStatus", "Failure", "issue_text"]

CheckStatus = Literal["confirmed", "not reproduced", "not checked", "no script"]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A configuration that a device fails, and how."""

    call: OpCall
    result: CaseResult
    """Of a crash nothing but status and reason."""
    death: Death | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """What running the script showed."""

    status: CheckStatus
    message: str
    """One sentence without a full stop: what happened instead, or why there is nothing to run."""
    printed: str = ""
    """The last of what the script printed."""


def issue_text(failure: Failure, facts: DeviceFacts, device: str, script: str, check: Check) -> str:
    """Title, what was expected and what happened, versions, script, and what running it showed.

    `device` is spelled as on the command line; `script` is empty when there is none.
    """
    call, result = failure.call, failure.result
    sections = [
        f"# `{call.op}` on {facts.backend}: {_TITLES.get(result.status, result.status)}",
        _sentence(result),
        *_no_device(facts),
        *_evidence(failure),
        "## Expected and found\n\n" + _expected(failure),
        f"## Configuration\n\n{_configuration(call)}",
        f"## Versions\n\n{_versions(facts)}",
        *_script(script, device),
        f"## Check\n\n{_checked(check, device)}",
    ]
    return "\n\n".join(section.rstrip() for section in sections) + "\n"


_TITLES = {
    "wrong": "wrong values",
    "nan": "NaN or infinity where the CPU has none, or none where it has",
    "crash": "ends the process",
    "unsupported": "raises where the CPU does not",
}


def _sentence(result: CaseResult) -> str:
    reason = result.reason or "the device and the CPU differ"
    end = "" if reason.endswith((".", "!", "?")) else "."
    return f"{reason[0].upper()}{reason[1:]}{end}"


def _no_device(facts: DeviceFacts) -> Iterator[str]:
    """What was seen on no real device is said to be that."""
    if facts.backend == "drill":
        yield "The fault was injected by a drill of opscan: **there is nothing to report**."
    if facts.backend == "metal-sim":
        yield (
            "*Simulated*: the release's own MPS code was run in opscan's simulator, on no Apple "
            "GPU. Run the script with `mps` on a Mac before you report it."
        )


def _evidence(failure: Failure) -> Iterator[str]:
    result, death = failure.result, failure.death
    if result.error:
        yield _fenced(result.error)
    if result.detections:
        yield "\n".join(f"- {d.kind} in {d.where}: {d.message}" for d in result.detections)
    if death is not None and death.stderr:
        yield f"It printed to stderr:\n\n{_fenced(death.stderr)}"


def _expected(failure: Failure) -> str:
    result, death = failure.result, failure.death
    if death is not None:
        times = f"{death.times} of {death.runs} runs"
        return f"Expected: it returns, as on the CPU. Found: {death.what} ({times})."
    outputs = [*result.outputs, *(result.gradient.outputs if result.gradient else ())]
    failed = [output for output in outputs if not output.passed]
    if not failed:
        return "Expected: what the CPU computes from the same arguments."
    note = "The reference is the CPU in double precision where the op could be raised."
    return f"{_table(_HEAD, map(_row, failed))}\n\n{note}"


_HEAD = (
    *("output", "elements that fail", "worst at", "found", "expected", "CPU"),
    *("times what is allowed", "smallest tolerance that passes"),
)


def _row(output: OutputResult) -> tuple[str, ...]:
    share = f"{output.count} of {output.elements} ({output.share:.2%})"
    figures = (_figure(output.error_factor), _figure(output.min_tolerance))
    worst = output.worst
    if worst is None:
        return (output.name, share, "", "", "", "", *figures)
    place = str(list(worst.index))
    values = (str(worst.device), str(worst.reference), str(worst.cpu))
    return (output.name, share, place, *values, *figures)


def _figure(value: Number) -> str:
    return f"{value:.3g}" if isinstance(value, float) else value


def _configuration(call: OpCall) -> str:
    head = ("argument", "dtype", "shape", "strides", "offset", "layout")
    rows = (
        (f"`{s.name}`", s.dtype, str(list(s.shape)), str(list(s.stride)), str(s.offset), s.layout)
        for s in call.inputs
    )
    others = [f"- `{name}`: `{value!r}`" for name, value in call.attributes.items()]
    return "\n".join([_table(head, rows), "", *others])


def _versions(facts: DeviceFacts) -> str:
    known = (("framework", facts.framework), ("device", facts.name), ("system", facts.os))
    return _table(("", "version"), (*known, *sorted(facts.details.items())))


def _script(script: str, device: str) -> Iterator[str]:
    if script:
        said = f"Run it with the name of a device; {device} if none is given."
        yield f"## Script\n\n{said}\n\n```python\n{script.rstrip()}\n```"


def _checked(check: Check, device: str) -> str:
    text = f"On {device}, after it was written: **{check.status}**: {check.message}."
    if check.status in {"no script", "not checked"}:
        text = f"**{check.status}**: {check.message}."
    return f"{text}\n\n{_fenced(check.printed)}" if check.printed else text


def _fenced(text: str) -> str:
    """A block of text that may hold fences itself."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
