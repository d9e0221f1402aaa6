"""What `opscan sim` found, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from scanner.report.words import clean, count
from scanner.sim.prepare.release import Found
from scanner.sim.study.interface import Comparison, Difference, Figures, OpAnswer

__all__ = ["answer_text", "comparison_text", "found_text"]

_LISTED = 8
_KINDS = {
    "now-raises": "ran and now raises",
    "now-runs": "raised and now runs",
    "path": "takes another path",
    "layout": "another dtype, shape or layout",
    "result": "other values",
}
_LABEL = 10


def found_text(found: Sequence[Found]) -> str:
    """`opscan sim list`: one release a line."""
    if not found:
        return "nothing is prepared; `opscan sim prepare torch==2.15.0` prepares a release\n"
    lines = (
        f"torch {each.release:<8} {each.nbytes / 1e6:>7,.0f} MB  {each.state:<8}  {each.folder}\n"
        for each in found
    )
    return "".join(lines)


def answer_text(answer: OpAnswer) -> str:
    """`opscan sim op`: what happened, then the values; simulated, and it says so."""
    place = f"macOS {answer.macos}, {answer.gpu}" if answer.gpu else "not opened"
    head = f"{answer.op} on simulated torch {answer.torch} ({place}): {answer.outcome}"
    return "\n".join([head, *(f"  {line}" for line in _answer_lines(answer))]) + "\n"


def comparison_text(comparison: Comparison) -> str:
    """`opscan sim diff`: what changed, what matters most first."""
    total = count(comparison.configurations, "configuration")
    different = {(each.op, each.inputs, str(each.attributes)) for each in comparison.differences}
    head = (
        f"{comparison.before} and {comparison.after}, both simulated: {total}, "
        f"{len(different):,} treated differently, {comparison.unknown:,} not known\n"
    )
    return head + "".join(_kind_text(kind, comparison.differences) for kind in _KINDS)


def _kind_text(kind: str, differences: Sequence[Difference]) -> str:
    chosen = sorted((each for each in differences if each.kind == kind), key=lambda each: each.op)
    if not chosen:
        return ""
    lines = [f"\n{_KINDS[kind]} ({len(chosen):,})"]
    for op, same in groupby(chosen, key=lambda each: each.op):
        each = list(same)
        worst = max(each, key=lambda one: _size(one.change.max_rel))
        more = f"; {len(each):,} configurations" if len(each) > 1 else ""
        lines.append(f"  {op}  {clean(worst.inputs)}: {_how(kind, worst)}{more}")
    return "\n".join(lines) + "\n"


def _how(kind: str, difference: Difference) -> str:
    change = difference.change
    if kind == "now-runs":
        return f"{change.after.outcome}; before: {_first_line(change.before.message)}"
    if kind == "now-raises":
        return _first_line(change.after.message)
    if kind == "path":
        return f"{change.before.outcome} became {change.after.outcome}"
    if kind == "layout":
        return change.layout
    share = f"{change.differs:,} of {count(change.elements, 'element')}"
    return f"{share} by up to {_number(change.max_rel)} of the value"


def _answer_lines(answer: OpAnswer) -> Iterator[str]:
    if answer.message:
        kind = f"{answer.exception}: " if answer.exception else ""
        yield _line("message", f"{kind}{clean(answer.message)}")
    for step in _limited([f"{'  ' * step.depth}{step.op}" for step in answer.path]):
        yield _line("path", step)
    for launch in answer.launches[:_LISTED]:
        grid, group = (" x ".join(map(str, each)) for each in (launch.grid, launch.threadgroup))
        yield _line("launch", f"{launch.kernel}  {grid} {launch.mode} in groups of {group}")
    for selector in _limited(answer.graph):
        yield _line("graph", selector)
    for name in answer.fallbacks:
        yield _line("on the CPU", name)
    for finding in answer.findings:
        yield _line("finding", finding)
    yield _line("memory", f"{answer.allocated:,} bytes taken; {count(answer.waits, 'wait')}")
    yield _line("arguments", clean(answer.args))
    if answer.error is not None:
        yield from _figures(answer.error)
    for direction, figures in answer.ends.items():
        yield _line(f"ulp {direction}", _error(figures))


def _figures(error: Figures) -> Iterator[str]:
    yield _line("error", _error(error))
    if error.worst is not None:
        worst = error.worst
        yield _line(
            "worst",
            f"output {worst.output} at {list(worst.index)}, input {worst.input}: "
            f"device {worst.device}, reference {worst.reference}",
        )


def _error(error: Figures) -> str:
    return (
        f"largest relative {_number(error.max_rel)} (CPU {_number(error.cpu_max_rel)}); "
        f"{error.differs:,} of {count(error.elements, 'element')} differ; "
        f"NaN {error.nan_differs:,}, infinity {error.inf_differs:,}"
    )


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}  {text}"


def _limited(texts: Sequence[str]) -> list[str]:
    more = [f"+{len(texts) - _LISTED} more"] if len(texts) > _LISTED else []
    return [*texts[:_LISTED], *more]


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _size(value: float | str) -> float:
    return float("inf") if isinstance(value, str) else value


def _first_line(text: str) -> str:
    line = clean(text.partition("\n")[0])
    return line if len(line) <= 120 else f"{line[:119]}…"
