"""A configuration as one side of a timing."""

from __future__ import annotations

import torch

from scanner.backends.interface import Device
from scanner.probe.attempt import on_device
from scanner.probe.rebuild import Operands, bind
from scanner.probe.schema import Schema
from scanner.probe.timing import Contender
from scanner.records import OpCall

__all__ = ["contender"]


def contender(device: Device, schema: Schema, call: OpCall, operands: Operands) -> Contender:
    """The op on tensors of its own; one that writes writes to the same ones over and over."""
    tensors, _ = on_device(device, call, operands)
    where = device.upload(torch.zeros(())).device
    bound = bind(schema, call, tensors, where)
    return Contender(
        run=lambda: device.submit(call.op, bound.args, bound.kwargs), timer=device.timer()
    )
