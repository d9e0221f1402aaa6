"""Lightning-style modules: the step is `training_step(batch, batch_idx)`, whoever their base is."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from scanner.errors import LocateError
from scanner.locate.blame import describe
from scanner.locate.context import Context
from scanner.locate.inference.entry import Entry, Inputs
from scanner.locate.inference.layer_shapes import BATCH, Scale
from scanner.locate.inference.layers import first_layer
from scanner.locate.inference.shapes import variants
from scanner.locate.inputs import find_inputs
from scanner.locate.interface import LocateOptions, NeedsValues, Subject
from scanner.locate.reading.trees import Function, definition, flat, function_node
from scanner.locate.spec import Group, InputSpec, TensorInput, format_value
from scanner.locate.tensors import make_value, spec_of
from scanner.locate.training.losses import loss_in_output
from scanner.locate.training.optimizers import first_optimizer
from scanner.locate.training.targets import first_tensor, target_shapes
from scanner.locate.training.wanted import is_classifying
from scanner.locate.trial import Outcome, attempt, keeping

__all__ = ["is_lightning", "lightning_subject"]

_MOST_TRIALS = 300
_DEPTH = 3
_SCALES = (
    Scale(image=224, length=32, signal=1024),
    Scale(image=28, length=128, signal=16000),
    Scale(image=32, length=64, signal=128),
)


@dataclass(frozen=True)
class _Form:
    """How `training_step` takes its batch apart."""

    keys: tuple[str, ...]
    """Names of the elements; empty for a batch that is one tensor."""
    is_dict: bool = False

    def batch(self, elements: tuple[Any, ...]) -> Any:
        if not self.keys:
            return elements[0]
        return dict(zip(self.keys, elements, strict=True)) if self.is_dict else elements


def is_lightning(model: Any) -> bool:
    """Whether the model trains by `training_step` and `configure_optimizers`."""
    return callable(getattr(model, "training_step", None)) and callable(
        getattr(model, "configure_optimizers", None)
    )


def lightning_subject(
    context: Context, model: Any, options: LocateOptions, notes: tuple[str, ...]
) -> Subject:
    """The subject of one training step, with a batch that `training_step` accepts.

    Raises `LocateError` when no batch is accepted, `NeedsValues` when telling needs values.
    """
    inputs = _forward_inputs(context, model, options)
    with keeping(model, real=options.real):
        batch, loss, told = _accepted_batch(context, model, inputs, options)
    optimizer, optimizer_note = _optimizer(context, model)
    return Subject(
        model=model,
        args=_step_arguments(model, batch),
        forward=model.training_step,
        loss=loss,
        optimizer=optimizer,
        notes=(
            *notes,
            *inputs.notes,
            f"one step is {type(model).__name__}.training_step(batch, 0) with batch {told}",
            optimizer_note,
        ),
    )


def _accepted_batch(
    context: Context, model: Any, inputs: Inputs, options: LocateOptions
) -> tuple[Any, Callable[[Any], Any], str]:
    """The first batch for which the step returns a loss, how to take that, and the batch's spec."""
    form = _form(model, "training_step", 0, _DEPTH) or _Form(())
    tried: list[Outcome] = []
    for elements in itertools.islice(_elements(model, form, inputs), _MOST_TRIALS):
        batch = form.batch(tuple(_made(element, options.real) for element in elements))
        arguments = _step_arguments(model, batch)
        outcome = attempt(lambda given=arguments: model.training_step(*given))  # type: ignore[misc]
        tried.append(outcome)
        plan = loss_in_output(outcome.output) if outcome.status == "ok" else None
        if plan is not None:
            return batch, plan.loss, _shown(form, elements)
    raise _failure(context, type(model).__name__, tried)


def _forward_inputs(context: Context, model: Any, options: LocateOptions) -> Inputs:
    """Inputs of `forward`, or none where only `training_step` computes anything."""
    if type(model).forward is torch.nn.Module.forward:
        return Inputs()
    entry = Entry(model=model, name=type(model).__name__)
    inputs = find_inputs(context, entry, dataclasses.replace(options, mode="infer"))
    if inputs.tried:
        return inputs
    with keeping(model, real=options.real):
        outcome = attempt(lambda: model(*inputs.args, **inputs.kwargs))
    return dataclasses.replace(inputs, output=outcome.output)


def _step_arguments(model: Any, batch: Any) -> tuple[Any, ...]:
    """The batch, and 0 for every further parameter that must be given (`batch_idx`)."""
    parameters = list(inspect.signature(model.training_step).parameters.values())
    more = [p for p in parameters[1:] if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return batch, *(0 for p in more if p.kind is not p.VAR_POSITIONAL)


def _form(model: Any, method: str, position: int, depth: int) -> _Form | None:
    """Read from the code of the method that receives the batch at that position."""
    node = function_node(getattr(type(model), method, None))
    if node is None or depth == 0 or len(node.args.args) <= position + 1:
        return None
    name = node.args.args[position + 1].arg
    return _unpacked(node, name) or _subscripted(node, name) or _passed_on(model, node, name, depth)


def _unpacked(node: Function, name: str) -> _Form | None:
    for statement in flat(node.body):
        if isinstance(statement, ast.Assign) and _is_name(statement.value, name):
            target = statement.targets[0]
            if isinstance(target, ast.Tuple):
                keys = [
                    t.id if isinstance(t, ast.Name) else f"_{i}" for i, t in enumerate(target.elts)
                ]
                return _Form(tuple(keys))
    return None


def _subscripted(node: Function, name: str) -> _Form | None:
    parts = [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Subscript)
        and _is_name(part.value, name)
        and isinstance(part.slice, ast.Constant)
    ]
    parts.sort(key=lambda part: (part.lineno, part.col_offset))
    keys = [part.slice.value for part in parts if isinstance(part.slice, ast.Constant)]
    words = sorted({key for key in keys if isinstance(key, str)}, key=keys.index)
    numbers = [key for key in keys if isinstance(key, int)]
    if words:
        return _Form(tuple(words), is_dict=True)
    return _Form(tuple(f"_{i}" for i in range(max(numbers) + 1))) if numbers else None


def _passed_on(model: Any, node: Function, name: str, depth: int) -> _Form | None:
    """`self.shared_step(batch, …)`: the method that it calls takes the batch apart."""
    for part in ast.walk(node):
        if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute):
            continue
        places = [i for i, argument in enumerate(part.args) if _is_name(argument, name)]
        if places and _is_name(part.func.value, "self"):
            form = _form(model, part.func.attr, places[0], depth - 1)
            if form is not None:
                return form
    return None


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _elements(model: Any, form: _Form, inputs: Inputs) -> Iterator[tuple[Any, ...]]:
    """Batches to try: the forward's inputs in front, then targets that fit its output."""
    count = max(len(form.keys), 1)
    known = [*inputs.args, *inputs.kwargs.values()][:count]
    main = first_tensor(inputs.output)
    if main is not None:
        targets: list[Any] = [*_targets(model, main)]
        targets += [value for value in known if isinstance(value, torch.Tensor)]
        for rest in itertools.product(targets, repeat=count - len(known)):
            yield (*known, *rest)
        return
    first, last = first_layer(model), _last_features(model)
    guessed = _targets(model, torch.empty(BATCH, last)) if last else []
    for scale in _SCALES:
        data = variants((form.keys or ("x",))[0], None, None, first, scale)
        others = [[*guessed, *variants(key, None, None, first, scale)] for key in form.keys[1:]]
        yield from itertools.product(data, *others)


def _targets(model: Any, output: torch.Tensor) -> list[TensorInput]:
    """Both kinds of targets; class indices first where the module's code speaks of classes."""
    node = definition(type(model))
    classes_first = node is not None and is_classifying(ast.unparse(node))
    kinds = (classes_first, not classes_first)
    return list(
        dict.fromkeys(t for kind in kinds for t in target_shapes(output, classes_first=kind))
    )


def _last_features(model: torch.nn.Module) -> int | None:
    sizes = [m.out_features for m in model.modules() if isinstance(m, torch.nn.Linear)]
    return sizes[-1] if sizes else None


def _made(element: Any, real: bool) -> Any:
    is_spec = isinstance(element, TensorInput | Group)
    return make_value(element, real=real) if is_spec else element


def _shown(form: _Form, elements: tuple[Any, ...]) -> str:
    specs = [
        e if isinstance(e, TensorInput | Group) else (spec_of([e]) or InputSpec(())).items[0][1]
        for e in elements
    ]
    texts = [format_value(spec) for spec in specs]
    if form.is_dict:
        return "{" + ", ".join(f"{k}: {t}" for k, t in zip(form.keys, texts, strict=True)) + "}"
    return texts[0] if not form.keys else f"({', '.join(texts)})"


def _optimizer(context: Context, model: Any) -> tuple[Any, str]:
    """The first optimizer of `configure_optimizers()`, and a note on it or on why there is none."""
    try:
        optimizer = first_optimizer(model.configure_optimizers())
    except Exception as error:
        return None, f"configure_optimizers() was not used: {describe(error, context.cwd)}"
    return optimizer, f"optimizer from configure_optimizers(): {type(optimizer).__name__}"


def _failure(context: Context, name: str, tried: list[Outcome]) -> LocateError:
    remedy = "write opscan_model() and return training_step's parts: (model, inputs, loss)"
    doubtful = next((outcome for outcome in tried if outcome.status == "values"), None)
    if doubtful is not None:
        error: LocateError = NeedsValues(
            f"{name}.training_step cannot be checked on tensors without values", remedy=remedy
        )
        error.__cause__ = doubtful.error
        return error
    errors = [outcome.error for outcome in tried if outcome.error is not None]
    told = describe(errors[0], context.cwd) if errors else "it returns no scalar loss"
    return LocateError(
        f"{name}.training_step accepts no batch that was tried: {told}", remedy=remedy
    )
