"""Infers a model's inputs: tries shapes until its forward runs."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from scanner.errors import LocateError
from scanner.locate.blame import describe, user_frame
from scanner.locate.context import Context
from scanner.locate.hints import image_sizes, sequence_lengths
from scanner.locate.interface import LocateOptions, NeedsValues
from scanner.locate.layer_shapes import Scale
from scanner.locate.layers import first_layer, first_use
from scanner.locate.shapes import is_target_name, scales, variants
from scanner.locate.spec import Group, InputSpec, TensorInput, Value, format_inputs
from scanner.locate.targets import first_tensor, scalar_loss, target_shapes
from scanner.locate.tensors import make_value
from scanner.locate.trial import Outcome, attempt, keeping

__all__ = ["Entry", "Inputs", "infer"]

_MOST_TRIALS = 400
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_Chosen = dict[str, Value]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is called with the inputs."""

    model: Any
    method: str = ""
    """Empty for the model itself."""
    extras: tuple[str, ...] = ()
    """Optional parameters that the file's own call gives."""
    name: str = ""
    """How messages name the model."""

    @property
    def function(self) -> Callable[..., Any]:
        """The callable."""
        found: Callable[..., Any] = getattr(self.model, self.method) if self.method else self.model
        return found

    @functools.cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Of the forward function, without self."""
        function = self.function
        if isinstance(function, torch.nn.Module):
            function = function.forward
        try:
            return dict(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            return {}

    @property
    def shown(self) -> str:
        """`forward(x, mask)`."""
        is_module = isinstance(self.model, torch.nn.Module)
        name = self.method or ("forward" if is_module else self.name)
        return f"{name}({', '.join(self.parameters)})"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Arguments for one call."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    output: Any = None
    """Of the trial that accepted them."""
    tried: bool = False
    """Whether `output` is one."""
    notes: tuple[str, ...] = ()


def infer(context: Context, entry: Entry, options: LocateOptions) -> Inputs:
    """Inputs that the entry accepts, found by trying.

    Raises `LocateError` when none is accepted, `NeedsValues` when telling would need values.
    """
    search = _Search(context, entry, options)
    with keeping(entry.model, real=options.real):
        chosen, outcome = search.required()
        if options.mode != "infer":
            chosen, outcome = search.with_labels(chosen, outcome)
    made = {name: search.made(value) for name, value in chosen.items()}
    args, kwargs = _split(entry, made)
    return Inputs(
        args=args, kwargs=kwargs, output=outcome.output, tried=True, notes=_notes(entry, chosen)
    )


def _split(entry: Entry, made: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments as long as none is skipped, the others by keyword."""
    args: list[Any] = []
    rest = dict(made)
    for name, parameter in entry.parameters.items():
        is_keyword = parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
        if name not in rest or is_keyword:
            break
        args.append(rest.pop(name))
    return tuple(args), rest


def _notes(entry: Entry, chosen: _Chosen) -> tuple[str, ...]:
    if not chosen:
        return (f"{entry.shown} is called without inputs",)
    variadic = [n for n in chosen if entry.parameters[n].kind in _VARIADIC]
    spec = InputSpec(tuple((None if n in variadic else n, v) for n, v in chosen.items()))
    return (f'inputs inferred: --inputs "{format_inputs(spec)}"',)


class _Search:
    """The trials for one entry."""

    def __init__(self, context: Context, entry: Entry, options: LocateOptions) -> None:
        self.context = context
        self.entry = entry
        self.real = options.real
        self.first = first_layer(entry.model) if isinstance(entry.model, torch.nn.Module) else None
        self.dtype = _float_dtype(entry.model)
        self.scales = scales(
            entry.model,
            image_sizes(context, entry.model),
            sequence_lengths(context, entry.model),
        )
        self.errors: list[BaseException] = []

    def made(self, value: Value) -> Any:
        return make_value(value, real=self.real)

    def required(self) -> tuple[_Chosen, Outcome]:
        """The first choice of parameters and shapes that runs."""
        doubtful: Outcome | None = None
        for names in self._name_sets():
            for chosen in self._choices(names):
                outcome = self._try(chosen)
                if outcome.status == "ok":
                    return chosen, outcome
                doubtful = doubtful or (outcome if outcome.status == "values" else None)
        if doubtful is not None and not self.real:
            raise NeedsValues(
                f"{self.entry.name}: the inputs of {self.entry.shown} cannot be checked on tensors "
                "without values",
                remedy=self._remedy(),
            ) from doubtful.error
        raise self._failure()

    def _name_sets(self) -> Iterator[tuple[str, ...]]:
        """Which parameters to give: with the extras of the file's call, then without."""
        parameters = self.entry.parameters
        needed = [
            name
            for name, p in parameters.items()
            if p.default is p.empty and p.kind not in _VARIADIC
        ]
        optional = [n for n, p in parameters.items() if p.kind not in _VARIADIC and n not in needed]
        extras = [name for name in self.entry.extras if name in optional]
        if extras:
            yield tuple(name for name in parameters if name in needed or name in extras)
        yield tuple(needed)
        if not needed:
            yield from ((name,) for name in optional[:1])
            variadic = [n for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL]
            yield from ((name,) for name in variadic)

    def _choices(self, names: tuple[str, ...]) -> Iterator[_Chosen]:
        seen: set[tuple[Value, ...]] = set()
        for scale in self.scales:
            options = [self._variants(name, scale) for name in names]
            ranked = sorted(
                itertools.islice(itertools.product(*map(enumerate, options)), 20_000),
                key=lambda combination: sum(rank for rank, _ in combination),
            )
            for combination in ranked:
                values = tuple(value for _, value in combination)
                if values not in seen and len(seen) < _MOST_TRIALS:
                    seen.add(values)
                    yield dict(zip(names, values, strict=True))

    def _variants(self, name: str, scale: Scale) -> list[Value]:
        parameter = self.entry.parameters[name]
        use = first_use(self.entry.model, name, self.entry.method or "forward")
        found = variants(name, parameter.annotation, use, self.first, scale)
        return [_cast(value, self.dtype) for value in found]

    def _try(self, chosen: _Chosen) -> Outcome:
        made = {name: self.made(value) for name, value in chosen.items()}
        args, kwargs = _split(self.entry, made)
        outcome = attempt(lambda: self.entry.function(*args, **kwargs))
        if outcome.error is not None:
            self.errors.append(outcome.error)
        return outcome

    def with_labels(self, chosen: _Chosen, outcome: Outcome) -> tuple[_Chosen, Outcome]:
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

    def _labels(self, chosen: _Chosen, output: Any) -> Iterable[Value]:
        """Like integer inputs first (next tokens), then what fits the output."""
        tokens = [v for v in chosen.values() if isinstance(v, TensorInput) and v.dtype == "int64"]
        main = first_tensor(output)
        fitting = [] if main is None else target_shapes(main, classes_first=True)
        return dict.fromkeys([*tokens, *fitting])

    def _failure(self) -> LocateError:
        if not self.errors:
            return LocateError(
                f"{self.entry.name}: no inputs for {self.entry.shown} could be inferred",
                remedy=self._remedy(),
            )
        first = self.errors[0]
        places = {_place(error) for error in self.errors}
        told = describe(first, self.context.cwd)
        if len(places) == 1 and len(self.errors) > 1:
            message = f"{self.entry.name}: {self.entry.shown} raises for all inputs tried: {told}"
        else:
            message = (
                f"{self.entry.name}: no inputs for {self.entry.shown} could be inferred; "
                f"the likeliest failed: {told}"
            )
        return LocateError(message, remedy=self._remedy())

    def _remedy(self) -> str:
        names = [
            f"{name}=2x16:float32"
            for name, p in self.entry.parameters.items()
            if p.default is p.empty and p.kind not in _VARIADIC
        ]
        return f'give them, for example --inputs "{",".join(names) or "2x16:float32"}"'


def _place(error: BaseException) -> tuple[str, object, str]:
    frame = user_frame(error)
    return type(error).__name__, frame and (frame.filename, frame.lineno), str(error)


def _float_dtype(model: Any) -> str:
    """dtype of the model's first parameter, which its float inputs share."""
    if isinstance(model, torch.nn.Module):
        for parameter in model.parameters():
            if parameter.is_floating_point() or parameter.is_complex():
                return str(parameter.dtype).removeprefix("torch.")
    return "float32"


def _cast(value: Value, dtype: str) -> Value:
    if isinstance(value, Group):
        return Group(tuple(_cast(item, dtype) for item in value.items), value.is_list)
    if isinstance(value, TensorInput) and value.dtype == "float32":
        return dataclasses.replace(value, dtype=dtype)
    return value
