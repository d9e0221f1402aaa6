"""Runs every op of a step a second and a third time, on a device and in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from scanner.backends.interface import Device
from scanner.capture import describe
from scanner.capture.placement import Placement
from scanner.capture.recorder import Locate, Recorder
from scanner.probe.accumulate import Gap, worst_gap
from scanner.probe.calls import Call, Given, is_ambiguous, kept, prints, written
from scanner.probe.families import UNDEFINED
from scanner.probe.fingerprint import Fingerprint
from scanner.probe.lanes import DeviceLane, Lane, RaisedLane
from scanner.probe.reference import flat_results
from scanner.probe.schema import schema_of
from scanner.probe.standards import Standard, private_outputs, standard_of
from scanner.probe.verdict import explain, raised_status
from scanner.records import Accumulated, Divergence, Location, OpCall

__all__ = ["DeviceEnded", "Doing", "Follower", "OwnFault"]

Doing = Callable[[Divergence], object]
"""Hears of each op before the device runs it: what to say if the process does not survive it."""


class DeviceEnded(BaseException):
    """A step on the device would end here. No `Exception`, so that the user's code lets it pass."""


class OwnFault(BaseException):
    """A bug of ours inside the user's step, which must not be taken for theirs."""


class Follower(Recorder):
    """A recorder that compares. Raises `DeviceEnded` out of the step when the device raises."""

    def __init__(
        self,
        locate: Locate,
        placement: Placement,
        fallbacks: frozenset[str],
        device: Device,
        doing: Doing,
    ) -> None:
        super().__init__(locate, placement, fallbacks)
        self.step = 1
        self.ours = DeviceLane(device, placement.is_host)
        self.raised = RaisedLane(placement.is_host)
        self._doing = doing
        self._call: Call | None = None
        self._known: dict[int, tuple[OpCall, Standard]] = {}
        self._found: dict[str, Divergence] = {}
        self._worst: dict[str, float] = {}
        self._ops = self._compared = 0

    def result(self, device: str, asked: int) -> Accumulated:
        """What has been found so far."""
        return Accumulated(
            device=device,
            asked=asked,
            ops=self._ops,
            compared=self._compared,
            first=self._found.get("wrong"),
            drift=self._found.get("drift"),
            first_nan=self._found.get("nan"),
            ended=self._found.get("raises"),
            worst={phase: float(f"{share:.3g}") for phase, share in self._worst.items()},
        )

    def _perform(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with _ours():
            self._call = self._prepared(func, (args, kwargs))
        return super()._perform(func, args, kwargs)

    def _prepared(self, func: Any, given: Given) -> Call | None:
        """The arguments as they are before the op may write them; None for what lanes skip."""
        schema = schema_of(describe.op_name(func))
        tensors = [leaf for leaf in tree_leaves(given) if isinstance(leaf, Tensor)]
        on_host = bool(tensors) and all(map(self._placement.is_host, tensors))
        if on_host or self._placement.creating == "host" or schema.family in UNDEFINED:
            return None
        ours, raised = self.ours.arguments(given), self.raised.arguments(given)
        return Call(schema.op, schema, given, ours, raised)

    def _ran(self, row: int, place: Location | None, result: Any) -> None:
        call, self._call = self._call, None
        if call is not None:
            with _ours():
                self._follow(call, row, place, result)

    def _follow(self, call: Call, row: int, place: Location | None, result: Any) -> None:
        real = flat_results(result, written(call.schema, call.real))
        real = {name: tensor.detach() for name, tensor in real.items()}
        if not any(isinstance(leaf, Tensor) for leaf in tree_leaves(result)) and not real:
            return
        if row not in self._known:
            known = self.call(row)
            self._known[row] = known, standard_of(call.schema, known)
        config, standard = self._known[row]
        hidden = private_outputs(call.schema, config)
        raised = self._on_raised(call, real, hidden)
        before = kept(call.schema, call.ours)
        note = self._note(config, place)
        ours = self._on_device(call, note, real, hidden)
        if not standard.compares_values:
            self._share(call, real)
            return
        self._compared += 1
        kinds = {name: tensor for name, tensor in real.items() if name not in hidden}
        seen = [
            prints(call.schema, each, kinds, config.attributes) for each in (ours, real, raised)
        ]
        gap = worst_gap(seen[0], seen[1], seen[2], standard)
        if gap.past:
            spoilt = "wrong" in self._found
            alone = None if spoilt else self._alone(call, before, seen[0], config, standard)
            self._judge(note, gap, alone)
        self._tally(note, gap)
        if not gap.floating or is_ambiguous(call.schema, real, config.attributes):
            # Choices that rounding has made, or signs: neither lane is the one to follow.
            self._share(call, real)

    def _note(self, config: OpCall, place: Location | None) -> Divergence:
        return Divergence(
            op=config.op,
            phase=config.phase,
            step=self.step,
            kind="crash",
            message="",
            location=place,
        )

    def _on_raised(
        self, call: Call, real: Mapping[str, Tensor], hidden: frozenset[str]
    ) -> dict[str, Tensor]:
        """Without a result in double precision, the CPU's own takes its place."""
        try:
            result = self.raised.run(call.op, *call.raised)
        except Exception:
            self.raised.forget(real.values())
            return {}
        found = flat_results(result, written(call.schema, call.raised))
        _adopt(self.raised, real, found, hidden, keep_private=False)
        return found

    def _on_device(
        self, call: Call, note: Divergence, real: Mapping[str, Tensor], hidden: frozenset[str]
    ) -> dict[str, Tensor]:
        self._doing(note)
        try:
            result = self.ours.run(call.op, *call.ours)
        except Exception as error:
            status, reason, _ = raised_status(error)
            if status == "unknown":
                raise DeviceEnded(f"{reason}: {call.op} in step {self.step}") from error
            message = f"{reason}: {explain(error)}"
            self._found["raises"] = msgspec.structs.replace(note, kind="raises", message=message)
            raise DeviceEnded from error
        self._ops += 1
        found = flat_results(result, written(call.schema, call.ours))
        _adopt(self.ours, real, found, hidden, keep_private=True)
        return found

    def _tally(self, note: Divergence, gap: Gap) -> None:
        if math.isfinite(gap.share):
            self._worst[note.phase] = max(self._worst.get(note.phase, 0.0), gap.share)

    def _judge(self, note: Divergence, gap: Gap, alone: Gap | None) -> None:
        # What cannot be computed again has drifted if something before it has; whatever follows a
        # wrong result has inherited it.
        drifted = not alone.past if alone is not None else "drift" in self._found
        found = msgspec.structs.replace(
            note,
            kind="drift" if drifted else "wrong",
            message=gap.message,
            error=gap.error if math.isfinite(gap.error) else None,
            cpu_error=gap.own if math.isfinite(gap.own) else None,
        )
        if "wrong" not in self._found:
            self._found.setdefault(found.kind, found)
        if gap.nans:
            # The first has made it, since its inputs hold none that the CPU's do not.
            self._found.setdefault("nan", msgspec.structs.replace(found, kind="nan"))

    def _alone(
        self,
        call: Call,
        before: Given | None,
        ours: Mapping[str, Fingerprint],
        config: OpCall,
        standard: Standard,
    ) -> Gap | None:
        """The device beside the CPU, of the device's own inputs; None when that cannot be told."""
        if before is None:
            return None
        given = self.ours.download(before)
        wide = RaisedLane(lambda _: False)
        raised_given = wide.arguments(given)
        try:
            raised = wide.run(call.op, *raised_given)
            plain = Lane(lambda _: False).run(call.op, *given)
        except Exception:
            return None
        right = flat_results(raised, written(call.schema, raised_given))
        theirs = flat_results(plain, written(call.schema, given))
        hidden = private_outputs(call.schema, config)
        wanted = {name: tensor for name, tensor in theirs.items() if name not in hidden}
        seen = [prints(call.schema, each, wanted, config.attributes) for each in (theirs, right)]
        return worst_gap(ours, seen[0], seen[1], standard)

    def _share(self, call: Call, real: Mapping[str, Tensor]) -> None:
        """Gives the lanes the step's values, but for what dropout does to its input."""
        for lane, (args, _) in ((self.ours, call.ours), (self.raised, call.raised)):
            lane.forget(tensor for tensor in real.values() if _overlaps(tensor))
            for tensor in real.values():
                if not _overlaps(tensor):
                    lane.take(tensor).copy_(tensor)
            if call.op == "aten::native_dropout":
                kept_share = 1 - float(args[1])
                masked = args[0] * lane.take(real["1"])
                lane.take(real["0"]).copy_(masked / kept_share if kept_share else masked)


@contextmanager
def _ours() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise OwnFault from error


def _overlaps(tensor: Tensor) -> bool:
    """Whether elements may share memory, so that they cannot be written."""
    return torch._debug_has_internal_overlap(tensor) != 0


def _adopt(
    lane: Lane,
    real: Mapping[str, Tensor],
    found: Mapping[str, Tensor],
    hidden: frozenset[str],
    *,
    keep_private: bool,
) -> None:
    """Makes the results the lane's; one of another shape or dtype cannot be."""
    for name, tensor in real.items():
        own = found.get(name)
        fits = own is not None and (own.shape, own.dtype) == (
            tensor.shape,
            lane.dtype(tensor.dtype),
        )
        private = name in hidden and keep_private
        lane.adopt(
            tensor, own if private or (fits and name not in hidden) else None, private=private
        )
