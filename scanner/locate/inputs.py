"""The inputs of a model, from the first source that has them.

1. The hook (not here).   2. `--inputs`.   3. Well-known names on the model or in the file.
4. Tensors of the file that its own training step passes.
5. Inference from the first layers and the forward signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from scanner.errors import LocateError, UsageError
from scanner.locate.blame import describe
from scanner.locate.context import Context
from scanner.locate.inference.entry import Entry, Inputs
from scanner.locate.inference.infer import infer
from scanner.locate.interface import LocateOptions
from scanner.locate.spec import format_inputs, parse_inputs
from scanner.locate.tensors import make_inputs, spec_of
from scanner.locate.trial import attempt, keeping

__all__ = ["as_arguments", "find_inputs"]

_NAMES = (
    "example_inputs",
    "example_input",
    "example_input_array",
    "dummy_inputs",
    "dummy_input",
    "sample_inputs",
    "sample_input",
    "get_example_inputs",
    "get_dummy_inputs",
)


def find_inputs(
    context: Context,
    entry: Entry,
    options: LocateOptions,
    passed: tuple[str, Any] | None = None,
) -> Inputs:
    """Inputs for the entry, by the module's rules.

    `passed` are the place and arguments of the file's own call, where those exist already.
    Raises `UsageError` for a spec that does not parse or does not fit the signature, `LocateError`
    when no inputs can be inferred.
    """
    if options.inputs is not None:
        return _given(entry, options)
    refused: list[_Refused] = []
    known = [*_well_known(context, entry), *([passed] if passed is not None else [])]
    for place, value in known:
        inputs = _known(context, entry, options, place, value)
        if isinstance(inputs, Inputs):
            return inputs
        refused.append(inputs)
    for one in refused:
        if one.raised:
            # What the file says is meant for the model; other shapes would only hide the failure.
            raise LocateError(one.text, remedy="mend the model, or give other shapes by --inputs")
    inferred = infer(context, entry, options)
    return Inputs(
        args=inferred.args,
        kwargs=inferred.kwargs,
        output=inferred.output,
        tried=True,
        notes=(*(one.text for one in refused), *inferred.notes),
    )


class _Refused(NamedTuple):
    """Inputs that the file names and that were not used."""

    text: str
    raised: bool = False
    """Whether the model itself raised on them."""


def _given(entry: Entry, options: LocateOptions) -> Inputs:
    spec = parse_inputs(options.inputs or "")
    try:
        args, kwargs = make_inputs(spec, real=options.real)
    except (RuntimeError, OverflowError) as error:
        raise UsageError(
            f"--inputs: a tensor of this size cannot be made: {error}",
            remedy="give smaller shapes",
        ) from error
    try:
        _signature(entry).bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(
            f"--inputs does not fit {entry.shown} of {entry.name}: {error}",
            remedy=f'given was "{format_inputs(spec)}"; name the inputs as the parameters',
        ) from error
    return Inputs(args=args, kwargs=kwargs)


def _signature(entry: Entry) -> inspect.Signature:
    if not entry.parameters:
        return inspect.Signature(
            [
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
        )
    return inspect.Signature(list(entry.parameters.values()))


def _well_known(context: Context, entry: Entry) -> Iterator[tuple[str, Any]]:
    """(place, value) of every well-known name: on the model, then in the file."""
    for name in _NAMES:
        value = getattr(entry.model, name, None)
        if value is not None:
            yield f"{entry.name}.{name}", value
    for name in _NAMES:
        if context.namespace.get(name) is not None:
            yield f"{context.display}:{name}", context.namespace[name]


def _known(
    context: Context, entry: Entry, options: LocateOptions, place: str, value: Any
) -> Inputs | _Refused:
    """The inputs that the value gives, or why it was not used."""
    if callable(value) and not isinstance(value, torch.Tensor):
        made = attempt(value)
        if made.error is not None:
            return _Refused(f"{place}() was not used: {describe(made.error, context.cwd)}")
        value = made.output
    arguments = as_arguments(value)
    if arguments is None:
        return _Refused(f"{place} was not used: it is a {type(value).__name__}, not tensors")
    args, kwargs = arguments
    if not args and kwargs.keys() <= entry.parameters.keys():
        args, kwargs = entry.split(kwargs)
    with keeping(entry.model, real=options.real):
        outcome = attempt(lambda: entry.function(*args, **kwargs))
    if outcome.status == "failed":
        assert outcome.error is not None
        why = describe(outcome.error, context.cwd).replace("\n", " ")
        return _Refused(f"the model raises on {place}: {why}", raised=True)
    spec = spec_of(args, kwargs)
    also = f" ({format_inputs(spec)})" if spec is not None else ""
    return Inputs(
        args=args,
        kwargs=kwargs,
        output=outcome.output,
        tried=outcome.status == "ok",
        notes=(f"inputs from {place}{also}",),
    )


def as_arguments(value: Any) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """A tensor, tuple, list or mapping by name as call arguments; None for anything else."""
    if isinstance(value, torch.Tensor):
        return (value,), {}
    if isinstance(value, Mapping):
        return (), {str(key): item for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(value), {}
    return None
