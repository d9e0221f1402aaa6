"""Infers a model's inputs: tries shapes until its forward runs."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable
from typing import Any

import torch

from scanner.errors import LocateError
from scanner.locate.blame import describe, user_frame
from scanner.locate.context import Context
from scanner.locate.inference.choices import Choices, Chosen
from scanner.locate.inference.entry import VARIADIC, Entry, Inputs
from scanner.locate.inference.shapes import is_target_name
from scanner.locate.interface import LocateOptions, NeedsValues
from scanner.locate.spec import Group, InputSpec, TensorInput, Value, format_inputs
from scanner.locate.tensors import make_value
from scanner.locate.training.targets import first_tensor, scalar_loss, target_shapes
from scanner.locate.trial import Outcome, attempt, keeping

__all__ = ["infer"]


def infer(context: Context, entry: Entry, options: LocateOptions) -> Inputs:
    """Inputs that the entry accepts, found by trying.

    Raises `LocateError` when none is accepted, `NeedsValues` when telling would need values.
    """
    search = _Search(context, entry, options)
    with keeping(entry.model, real=options.real):
        chosen, outcome = search.accepted()
        if options.mode != "infer":
            chosen, outcome = search.with_labels(chosen, outcome)
    made = {name: make_value(value, real=options.real) for name, value in chosen.items()}
    args, kwargs = entry.split(made)
    return Inputs(
        args=args, kwargs=kwargs, output=outcome.output, tried=True, notes=_notes(entry, chosen)
    )


def _notes(entry: Entry, chosen: Chosen) -> tuple[str, ...]:
    if not chosen:
        return (f"{entry.shown} is called without inputs",)
    return (f'inputs inferred: --inputs "{_spelled(entry, chosen)}"',)


def _spelled(entry: Entry, chosen: Chosen) -> str:
    """The inputs as they can be pasted; arguments of `*args` have no names."""
    variadic = {name for name in chosen if entry.parameters[name].kind in VARIADIC}
    items = [(None if name in variadic else name, value) for name, value in chosen.items()]
    return format_inputs(InputSpec(tuple(items)))


class _Search:
    """The trials for one entry."""

    def __init__(self, context: Context, entry: Entry, options: LocateOptions) -> None:
        self.context = context
        self.entry = entry
        self.real = options.real
        self.choices = Choices(context, entry)
        self.errors: list[BaseException] = []

    def accepted(self) -> tuple[Chosen, Outcome]:
        """The first choice of parameters and shapes that runs."""
        doubtful: Outcome | None = None
        for names in self.choices.name_sets():
            for ranks, chosen in self.choices.combinations(names):
                outcome = self._try(chosen)
                if outcome.status == "ok":
                    return self._agreeing(names, ranks, chosen, outcome)
                doubtful = doubtful or (outcome if outcome.status == "values" else None)
        if doubtful is None:
            for names in self.choices.name_sets():
                for chosen in self.choices.odd_sizes(names):
                    outcome = self._try(chosen)
                    if outcome.status == "ok" and _is_agreeing(chosen, outcome):
                        return chosen, outcome
        if doubtful is not None and not self.real:
            raise NeedsValues(
                f"{self.entry.name}: the inputs of {self.entry.shown} cannot be checked on tensors "
                "without values",
                remedy=f"give them, for example {self._remedy()}",
            ) from doubtful.error
        raise self._failure()

    def _agreeing(
        self, names: tuple[str, ...], ranks: tuple[int, ...], chosen: Chosen, outcome: Outcome
    ) -> tuple[Chosen, Outcome]:
        """A choice whose output has as many samples as its inputs, else the given one.

        A model that flattens accepts images of many sizes and turns wrong ones into more samples.
        """
        if _is_agreeing(chosen, outcome):
            return chosen, outcome
        seen = [chosen]
        for scale in self.choices.scales:
            other = self.choices.at(names, ranks, scale)
            if other is not None and other not in seen:
                seen.append(other)
                tried = self._try(other)
                if tried.status == "ok" and _is_agreeing(other, tried):
                    return other, tried
        return chosen, outcome

    def _try(self, chosen: Chosen) -> Outcome:
        made = {name: make_value(value, real=self.real) for name, value in chosen.items()}
        args, kwargs = self.entry.split(made)
        entry = self.entry
        if _is_lazy(entry.model):  # the first call fixes its shapes, right or wrong
            entry = dataclasses.replace(entry, model=copy.deepcopy(entry.model))
        outcome = attempt(lambda: entry.function(*args, **kwargs))
        if outcome.status == "ok" and entry is not self.entry:
            outcome = attempt(lambda: self.entry.function(*args, **kwargs))
        if outcome.error is not None:
            self.errors.append(outcome.error)
        return outcome

    def with_labels(self, chosen: Chosen, outcome: Outcome) -> tuple[Chosen, Outcome]:
        """Adds an optional label argument when the forward returns a loss only with it."""
        if scalar_loss(outcome.output) is not None:
            return chosen, outcome
        for name in self.entry.parameters:
            if name in chosen or not is_target_name(name):
                continue
            for value in self._labels(chosen, outcome.output):
                candidate = {**chosen, name: value}
                labelled = self._try(candidate)
                if labelled.status == "ok" and scalar_loss(labelled.output) is not None:
                    return candidate, labelled
        return chosen, outcome

    def _labels(self, chosen: Chosen, output: Any) -> Iterable[Value]:
        """Like integer inputs first (next tokens), then what fits the output."""
        tokens = [v for v in chosen.values() if isinstance(v, TensorInput) and v.dtype == "int64"]
        main = first_tensor(output)
        fitting = [] if main is None else target_shapes(main, classes_first=True)
        return dict.fromkeys([*tokens, *fitting])

    def _failure(self) -> LocateError:
        told = describe(self.errors[0], self.context.cwd) if self.errors else "nothing to try"
        where = f"{self.entry.name}: {self.entry.shown}"
        places = {_place(error) for error in self.errors}
        if len(places) == 1 and len(self.errors) > 1:
            return LocateError(
                f"{where} raises for all inputs tried: {told}",
                remedy=f"mend the model, or give inputs that it takes: {self._remedy()}",
            )
        return LocateError(
            f"{where}: no inputs could be inferred; the likeliest failed: {told}",
            remedy=f"give them, for example {self._remedy()}",
        )

    def _remedy(self) -> str:
        """The likeliest inputs, as a flag to edit."""
        for names in self.choices.name_sets():
            for _, chosen in self.choices.combinations(names):
                if chosen:
                    return f'--inputs "{_spelled(self.entry, chosen)}"'
        return '--inputs "2x16:float32"'


def _is_agreeing(chosen: Chosen, outcome: Outcome) -> bool:
    """Whether a vector or matrix that comes out has as many rows as an input has samples."""
    main = first_tensor(outcome.output)
    if main is None or main.dim() not in (1, 2) or not chosen:
        return True
    sizes: set[int] = set()
    for value in chosen.values():
        for item in value.items if isinstance(value, Group) else (value,):
            sizes.update(item.shape[:2] if isinstance(item, TensorInput) else ())
    return main.shape[0] in sizes


def _place(error: BaseException) -> tuple[str, object, str]:
    frame = user_frame(error)
    return type(error).__name__, frame and (frame.filename, frame.lineno), str(error)


def _is_lazy(model: Any) -> bool:
    parameters = model.parameters() if isinstance(model, torch.nn.Module) else ()
    return any(isinstance(p, torch.nn.parameter.UninitializedParameter) for p in parameters)
