"""The loss that the user's file computes, with targets that fit the model's output."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from scanner.locate.context import Context, is_module_class
from scanner.locate.reading.outline import is_loss_name
from scanner.locate.reading.scopes import calls_in
from scanner.locate.spec import TensorInput, format_value
from scanner.locate.tensors import make_value
from scanner.locate.training.reference import Reference
from scanner.locate.training.slices import OUTPUT, bindings
from scanner.locate.training.step import TrainingStep
from scanner.locate.training.targets import first_tensor, scalar_loss, target_shapes
from scanner.locate.training.wanted import Wanted, choices, is_classifying
from scanner.locate.trial import Outcome, attempt

__all__ = ["LossPlan", "criterion_loss", "loss_in_output", "step_loss"]

_NAMES = ("criterion", "loss_fn", "loss_func", "loss_function", "criterium", "loss")


@dataclass(frozen=True, kw_only=True)
class LossPlan:
    """A loss of the model's output alone."""

    loss: Callable[[Any], Any]
    notes: tuple[str, ...]


def loss_in_output(output: Any) -> LossPlan | None:
    """Where the model returns a loss itself: takes it from the output."""
    suffix = scalar_loss(output)
    if suffix is None:
        return None
    take: dict[bool, Callable[[Any], Any]] = {
        suffix == "": lambda out: out,
        suffix == "['loss']": lambda out: out["loss"],
        suffix == ".loss": lambda out: out.loss,
    }
    loss = take.get(True) or _item(int(suffix.strip("[]")))
    return LossPlan(loss=loss, notes=(f"loss returned by the model: output{suffix}",))


def _item(index: int) -> Callable[[Any], Any]:
    return lambda out: out[index]


def step_loss(
    reference: Reference,
    step: TrainingStep,
    output: Any,
    arguments: Mapping[str, Any],
    *,
    real: bool = False,
) -> LossPlan | None:
    """The loss of the file's own training step, run as it stands there.

    `arguments` are the model's inputs by the names that the step uses for them. What remains open
    are targets, which are tried until the loss is a scalar; None when none fits.
    """
    run, wanted = _composed(reference, step, arguments)
    doubtful: LossPlan | None = None
    for chosen in choices(wanted, output, list(arguments.values())):
        given = {name: _made(value, real) for name, value in chosen.items()}
        plan = LossPlan(loss=_with(run, given), notes=(_step_note(reference, step, chosen),))
        outcome = attempt(lambda plan=plan: plan.loss(output))  # type: ignore[misc]
        if outcome.status == "ok" and scalar_loss(outcome.output) == "":
            return plan
        if outcome.status == "values":
            doubtful = doubtful or plan
    return doubtful


_Run = Callable[[Any, Mapping[str, Any]], Any]


def _with(run: _Run, given: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda out: run(out, given)


def _composed(
    reference: Reference, step: TrainingStep, arguments: Mapping[str, Any]
) -> tuple[_Run, Wanted]:
    """All parts of the step as one function of output and targets, and what targets it wants."""
    context = reference.context
    filename = str(context.loaded.path or context.display)
    runs: list[tuple[Callable[..., Any], dict[str, Any], list[str]]] = []
    wanted = Wanted()
    for part in step.parts:
        bound, names = bindings(reference, part.scope, part.code.free)
        bound |= {name: arguments[name] for name in names if name in arguments}
        names = [name for name in names if name not in arguments]
        runs.append((part.code.compiled(filename, context.namespace), bound, names))
        wanted.add(part.code, {**context.namespace, **bound}, names)

    def run(out: Any, given: Mapping[str, Any]) -> Any:
        for function, bound, names in runs:
            out = function(**bound, **{name: given[name] for name in names}, **{OUTPUT: out})
        return out

    return run, wanted


def _made(value: Any, real: bool) -> Any:
    return make_value(value, real=real) if isinstance(value, TensorInput) else value


def _fits(outcome: Outcome) -> bool:
    if outcome.status == "values":
        return True
    return outcome.status == "ok" and scalar_loss(outcome.output) == ""


def _step_note(reference: Reference, step: TrainingStep, chosen: Mapping[str, Any]) -> str:
    inner = step.parts[0].code
    code = ast.unparse(inner.expression)
    if step.is_named:
        code = ast.unparse(inner.statements[-1])
    code = code.replace(OUTPUT, "output")
    specs = [f"{n}={format_value(v)}" for n, v in chosen.items() if isinstance(v, TensorInput)]
    given = f" with {', '.join(specs)}" if specs else ""
    return f"loss from {reference.context.place(step.line)}: {code}{given}"


def criterion_loss(
    context: Context, output: Any, inputs: Iterable[Any], *, real: bool = False
) -> LossPlan | None:
    """A loss object or function that the file has, applied to the output and a fitting target.

    Scores (N, T, C) for a model of token `inputs` (N, T) are flattened to (N * T, C), as language
    models do.
    """
    main = first_tensor(output)
    if main is None:
        return None
    is_sequence = main.dim() == 3 and any(map(_is_tokens, inputs))
    for where, name, criterion in _criteria(context):
        classes_first = is_classifying(name)
        flat = is_sequence and classes_first
        scores = main.flatten(0, 1) if flat else main
        for target in target_shapes(scores, classes_first=classes_first):
            loss = _applied(criterion, flat, make_value(target, real=real))
            if _fits(attempt(lambda loss=loss: loss(output))):  # type: ignore[misc]
                shown = "output.flatten(0, 1)" if flat else "output"
                note = f"loss from {where}: {name}({shown}, target={format_value(target)})"
                return LossPlan(loss=loss, notes=(note,))
    return None


def _is_tokens(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() == 2 and value.dtype == torch.int64


def _applied(criterion: Any, flat: bool, target: Any) -> Callable[[Any], Any]:
    """The criterion on the output, or on its main tensor when that is a collection."""

    def loss(out: Any) -> Any:
        scores = out if isinstance(out, torch.Tensor) else first_tensor(out)
        assert scores is not None
        return criterion(scores.flatten(0, 1) if flat else scores, target)

    return loss


def _criteria(context: Context) -> Iterator[tuple[str, str, Any]]:
    """(place, name, callable) of every loss in the file: objects, then calls, in its order."""
    for name, value in context.namespace.items():
        if name in _NAMES and callable(value) and not is_module_class(value):
            yield context.display, getattr(value, "__name__", type(value).__name__), value
    for scope in context.scopes:
        if is_module_class(context.namespace.get(scope.owner)):
            continue
        values = context.values(scope)
        for _, call in calls_in(scope):
            target = values.target(call.func)
            place = context.place(call.lineno)
            if is_module_class(target) and _is_loss_class(target):
                built = values.get(call)
                if built is not None:
                    yield place, target.__name__, built
            elif _is_loss_function(target):
                yield place, target.__name__, target


def _is_loss_class(target: type) -> bool:
    return issubclass(target, torch.nn.modules.loss._Loss) or is_loss_name(target.__name__)


def _is_loss_function(target: Any) -> bool:
    name = getattr(target, "__name__", "")
    if target is None or getattr(torch.nn.functional, name, None) is not target:
        return False
    return name.endswith("_loss") or "cross_entropy" in name or name == "kl_div"
