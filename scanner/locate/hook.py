"""Calls `opscan_model()` and checks what it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from scanner.errors import LocateError
from scanner.locate.blame import blamed
from scanner.locate.construct import required_parameters
from scanner.locate.context import Context
from scanner.locate.inputs import as_arguments
from scanner.locate.interface import LocateOptions, Subject
from scanner.locate.reading.outline import HOOK

__all__ = ["check_hook_result", "subject_of_hook"]

_CONTRACT = f"""{HOOK}() must return (model, inputs), (model, inputs, loss) or \
(model, inputs, loss, optimizer):
    inputs     a tensor, a tuple of positional or a dict of named arguments
    loss       a callable from the model's output to a scalar, or None
    optimizer  a torch.optim optimizer over the model's parameters, or None"""


def subject_of_hook(context: Context, options: LocateOptions) -> Subject:
    """What the file's hook says; raises `LocateError` when it breaks the contract or raises."""
    function = context.namespace[HOOK]
    where = f"{context.display}: {HOOK}()"
    if not callable(function):
        raise LocateError(f"{where} is not a function", remedy=_CONTRACT)
    needed = [parameter.name for parameter in required_parameters(function)]
    if needed:
        raise LocateError(
            f"{where} is called without arguments, but needs {', '.join(needed)}",
            remedy="give them defaults",
        )
    with blamed(f"{where} failed", remedy=_CONTRACT, cwd=context.cwd):
        result = function()
    return check_hook_result(result, where, options)


def check_hook_result(result: Any, where: str, options: LocateOptions) -> Subject:
    """The subject in a hook's return value; raises `LocateError` that says what is wrong in it."""
    if not isinstance(result, tuple) or not 2 <= len(result) <= 4:
        raise LocateError(f"{where} returned {_told(result)}", remedy=_CONTRACT)
    model, inputs, loss, optimizer = (*result, None, None)[:4]
    if not callable(model):
        raise LocateError(
            f"{where}: the model is {_told(model)}, which cannot be called", remedy=_CONTRACT
        )
    arguments = as_arguments(inputs)
    if arguments is None:
        raise LocateError(f"{where}: the inputs are {_told(inputs)}", remedy=_CONTRACT)
    args, kwargs = arguments
    _check_binds(model, args, kwargs, where)
    if loss is not None:
        _check_loss(loss, where)
    if optimizer is not None:
        _check_optimizer(model, optimizer, where)
    training = options.mode != "infer"
    ignored = options.inputs is not None
    return Subject(
        model=model,
        args=args,
        kwargs=kwargs,
        loss=loss if training else None,
        optimizer=optimizer if training else None,
        notes=(f"--inputs is not used: {HOOK}() gives the inputs",) if ignored else (),
    )


def _check_binds(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], where: str) -> None:
    function: Callable[..., Any] = model.forward if isinstance(model, torch.nn.Module) else model
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise LocateError(
            f"{where}: the inputs do not fit {type(model).__name__}{signature}: {error}",
            remedy=_CONTRACT,
        ) from error


def _check_loss(loss: Any, where: str) -> None:
    if not callable(loss):
        raise LocateError(
            f"{where}: the loss is {_told(loss)}, which cannot be called", remedy=_CONTRACT
        )
    function = loss.forward if isinstance(loss, torch.nn.Module) else loss
    needed = [parameter.name for parameter in required_parameters(function)]
    if len(needed) > 1:
        raise LocateError(
            f"{where}: the loss needs {', '.join(needed)}, but is called with the model's output "
            "alone",
            remedy="bind the target, for example: lambda output: criterion(output, target)",
        )


def _check_optimizer(model: Any, optimizer: Any, where: str) -> None:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise LocateError(f"{where}: the optimizer is {_told(optimizer)}", remedy=_CONTRACT)
    if not isinstance(model, torch.nn.Module):
        return
    own = {id(parameter) for parameter in model.parameters()}
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if not own & held:
        raise LocateError(
            f"{where}: the optimizer holds none of the model's parameters",
            remedy="make it from model.parameters()",
        )


def _told(value: Any) -> str:
    """A value's kind, as an error message names it."""
    if isinstance(value, tuple):
        kinds = ", ".join(type(item).__name__ for item in value)
        return f"a tuple of {len(value)} ({kinds})"
    if value is None:
        return "None"
    name = value.__name__ if inspect.isclass(value) else type(value).__name__
    if inspect.isclass(value):
        return f"the class {name}, not an object of it"
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"
