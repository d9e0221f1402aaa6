"""Builds a candidate: the model, its inputs, and what its file says about training it."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from scanner.errors import LocateError
from scanner.locate.blame import describe
from scanner.locate.construct import HOOK_EXAMPLE, plan, run_plan
from scanner.locate.context import Context
from scanner.locate.inference.entry import Entry, Inputs
from scanner.locate.inputs import find_inputs
from scanner.locate.interface import LocateOptions, NeedsValues, Subject
from scanner.locate.local_models import LocalModel
from scanner.locate.reading.trees import root_name
from scanner.locate.training.blocks import leaf_names
from scanner.locate.training.lightning import is_lightning, lightning_subject
from scanner.locate.training.losses import LossPlan, criterion_loss, loss_in_output, step_loss
from scanner.locate.training.optimizers import (
    OptimizerPlan,
    find_clipping,
    find_optimizer,
    step_line,
)
from scanner.locate.training.reference import Reference
from scanner.locate.training.step import TrainingStep, find_step
from scanner.locate.trial import attempt, keeping
from scanner.locate.wrappers import unwrapped
from scanner.records import Phase

__all__ = ["from_class", "from_factory", "from_local", "from_object"]


def from_class(context: Context, cls: type, options: LocateOptions) -> Subject:
    """Constructs the class by the rules of `construct.plan`."""
    how = plan(context, cls)
    model = run_plan(context, how)
    return _assembled(context, Reference(context, model, cls), options, how.notes)


def from_factory(context: Context, function: Callable[..., Any], options: LocateOptions) -> Subject:
    """Calls the factory; of a tuple the model is used, and an optimizer when there is one."""
    how = plan(context, function)
    made = run_plan(context, how)
    parts = made if isinstance(made, tuple) else (made,)
    models = [part for part in parts if isinstance(part, torch.nn.Module)]
    if not models:
        raise LocateError(
            f"{context.display}: {function.__name__}() returned {type(made).__name__}, "
            "no nn.Module",
            remedy=HOOK_EXAMPLE,
        )
    model = unwrapped(models[0])
    subject = _assembled(context, Reference(context, model, function), options, how.notes)
    optimizers = [part for part in parts if isinstance(part, torch.optim.Optimizer)]
    if not optimizers or subject.optimizer is not None or options.mode == "infer":
        return subject
    note = f"optimizer returned by {function.__name__}(): {type(optimizers[0]).__name__}"
    return dataclasses.replace(subject, optimizer=optimizers[0], notes=(*subject.notes, note))


def from_object(context: Context, name: str, thing: Any, options: LocateOptions) -> Subject:
    """A module object of the file, below its wrappers, or a function on tensors."""
    if not isinstance(thing, torch.nn.Module):
        inputs = find_inputs(context, Entry(model=thing, name=name), options)
        return Subject(model=thing, args=inputs.args, kwargs=inputs.kwargs, notes=inputs.notes)
    model = unwrapped(thing)
    notes = (f"{type(thing).__name__} around {name} is left out",) if model is not thing else ()
    return _assembled(context, Reference(context, model, None), options, notes)


def from_local(context: Context, local: LocalModel, options: LocateOptions) -> Subject:
    """Evaluates the expression that a function of the file assigns the model from."""
    model = local.build(context)
    place = context.place(local.expression.lineno)
    notes = (f"{local.entry} built as at {place}: {ast.unparse(local.expression)[:80]}",)
    return _assembled(context, Reference(context, model, None), options, notes)


def _assembled(
    context: Context, reference: Reference, options: LocateOptions, notes: tuple[str, ...]
) -> Subject:
    model = reference.model
    training = options.mode != "infer" and isinstance(model, torch.nn.Module)
    if training and is_lightning(model):
        return lightning_subject(context, model, options, notes)
    step = find_step(reference) if training else None
    entry = _entry(model, step)
    passed = _passed(context, step, entry) if step is not None else None
    inputs = find_inputs(context, entry, options, passed)
    subject = Subject(
        model=model,
        args=inputs.args,
        kwargs=inputs.kwargs,
        forward=entry.function if entry.method else None,
        notes=(*notes, *inputs.notes),
    )
    return _with_training(reference, subject, step, entry, inputs, options) if training else subject


def _entry(model: Any, step: TrainingStep | None) -> Entry:
    """What the file's step calls, and which optional arguments it gives."""
    name = type(model).__name__
    if step is None:
        return Entry(model=model, name=name)
    entry = Entry(model=model, name=name, method=step.method)
    positional = list(entry.parameters)[: len(step.call.args)]
    keywords = [k.arg for k in step.call.keywords if k.arg in entry.parameters]
    extras = (*positional, *(name for name in keywords if name is not None))
    return dataclasses.replace(entry, extras=extras)


def _passed(
    context: Context, step: TrainingStep, entry: Entry
) -> tuple[str, dict[str, Any]] | None:
    """(place, tensors by parameter) where the step passes tensors that are globals of the file."""
    found: dict[str, Any] = {}
    for parameter, node in _given(step, entry).items():
        value = context.namespace.get(root_name(node) or "")
        if step.scope.name or not isinstance(value, torch.Tensor):
            return None
        found[parameter] = value
    return (context.place(step.call.lineno), found) if found else None


def _with_training(
    reference: Reference,
    subject: Subject,
    step: TrainingStep | None,
    entry: Entry,
    inputs: Inputs,
    options: LocateOptions,
) -> Subject:
    inputs = _with_leaves(step, entry, inputs)
    inputs = _tried(reference, entry, inputs, options, is_needed=step is not None)
    with keeping(reference.model, real=options.real):
        loss = _loss(reference, step, entry, inputs, options)
    optimizer = find_optimizer(reference) or OptimizerPlan(optimizer=None, notes=())
    clipping = find_clipping(reference)
    notes = [*subject.notes, *(loss.notes if loss else ()), *optimizer.notes]
    notes += clipping.notes if clipping else ()
    if step is not None:
        notes += step.notes
        notes += [f"autocast to {step.autocast} around the forward"] if step.autocast else []
    made = optimizer.optimizer
    return dataclasses.replace(
        subject,
        loss=loss.loss if loss else None,
        optimizer=made,
        clip=clipping.clip if clipping else None,
        autocast=step.autocast if step is not None else None,
        origins=_origins(reference, step, has_optimizer=made is not None),
        notes=tuple(notes),
    )


def _with_leaves(step: TrainingStep | None, entry: Entry, inputs: Inputs) -> Inputs:
    """Inputs that require gradients where the file's step differentiates by them."""
    if step is None:
        return inputs
    leaves = {name for part in step.parts for name in leaf_names(part.scope)}
    arguments = _arguments(step, entry, inputs)
    wanted = [arguments[name] for name in leaves if name in arguments]
    tensors = [t for t in wanted if isinstance(t, torch.Tensor) and t.is_floating_point()]
    for tensor in tensors:
        tensor.requires_grad_()
    return dataclasses.replace(inputs, tried=False) if tensors else inputs


def _origins(
    reference: Reference, step: TrainingStep | None, *, has_optimizer: bool
) -> dict[Phase, tuple[str, int]]:
    """The lines of the file's own loss, `backward()` and `optimizer.step()`."""
    lines: dict[Phase, int | None] = {}
    if step is not None:
        lines |= {"loss": step.line, "backward": step.backward_line}
    if has_optimizer:
        lines["optimizer"] = step_line(reference)
    file = str(reference.context.loaded.path or reference.context.display)
    return {phase: (file, line) for phase, line in lines.items() if line is not None}


def _tried(
    reference: Reference, entry: Entry, inputs: Inputs, options: LocateOptions, *, is_needed: bool
) -> Inputs:
    """The inputs with the model's output, which tells what targets fit.

    A forward that fails here fails again when it is captured, and is reported from there; one that
    needs values is another matter, since a world that has them would tell more.
    """
    if inputs.tried:
        return inputs
    with keeping(reference.model, real=options.real):
        outcome = attempt(
            lambda: entry.function(*inputs.args, **inputs.kwargs), grad=_has_leaf(inputs)
        )
    if outcome.status == "values" and is_needed and outcome.error is not None:
        raise NeedsValues(
            f"{entry.name}: the targets of its loss cannot be told without values: "
            f"{describe(outcome.error, reference.context.cwd)}",
            remedy=HOOK_EXAMPLE,
        ) from outcome.error
    return dataclasses.replace(inputs, output=outcome.output, tried=outcome.status == "ok")


def _has_leaf(inputs: Inputs) -> bool:
    values = (*inputs.args, *inputs.kwargs.values())
    return any(isinstance(value, torch.Tensor) and value.requires_grad for value in values)


def _loss(
    reference: Reference,
    step: TrainingStep | None,
    entry: Entry,
    inputs: Inputs,
    options: LocateOptions,
) -> LossPlan | None:
    """From the file's step, else from the output, else from a criterion that the file has."""
    if not inputs.tried:
        return None
    if step is not None:
        arguments = _arguments(step, entry, inputs)
        found = step_loss(reference, step, inputs.output, arguments, real=options.real)
        if found is not None:
            return found
    returned = loss_in_output(inputs.output)
    if returned is not None:
        return returned
    given = (*inputs.args, *inputs.kwargs.values())
    return criterion_loss(reference.context, inputs.output, given, real=options.real)


def _arguments(step: TrainingStep, entry: Entry, inputs: Inputs) -> dict[str, Any]:
    """The inputs by the names under which the step's own call passes them."""
    by_parameter = dict(zip(entry.parameters, inputs.args, strict=False)) | inputs.kwargs
    found: dict[str, Any] = {}
    for parameter, node in _given(step, entry).items():
        is_whole = not any(isinstance(part, ast.Subscript) for part in ast.walk(node))
        name = root_name(node)
        if name is not None and is_whole and parameter in by_parameter:
            found.setdefault(name, by_parameter[parameter])
    return found


def _given(step: TrainingStep, entry: Entry) -> dict[str, ast.expr]:
    """The expressions that the step's call passes, by parameter."""
    given: dict[str, ast.expr] = dict(zip(entry.parameters, step.call.args, strict=False))
    return given | {k.arg: k.value for k in step.call.keywords if k.arg is not None}
