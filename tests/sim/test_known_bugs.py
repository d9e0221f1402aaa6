"""Reported bugs, seen in a release that has them and gone in one that has not.

A release that is not prepared is skipped: `opscan sim prepare torch==2.8.0`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from scanner.backends.overloads import overload
from scanner.sim import host
from scanner.sim.assemble import open_release
from scanner.sim.call import Call, SimTensor
from scanner.sim.prepare.release import survey
from scanner.sim.session import Session
from scanner.sim.values import from_torch

from .known_bugs import REFUSED, WRONG, Bug

pytestmark = pytest.mark.sim


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    """Opens a release under a macOS version, each once."""
    usable = {found.release for found in survey() if found.state == "usable"}

    @functools.cache
    def open_one(release: str, macos: str) -> Session:
        if release not in usable:
            pytest.skip(f"torch {release} is not prepared")
        session = open_release(release, macos, host.known_gpu("M2", None))
        sessions.append(session)
        return session

    sessions: list[Session] = []
    yield open_one
    for session in sessions:
        session.close()


class Side:
    """A call on a release and on the CPU, with the same arguments over storages of their own."""

    def __init__(self, session: Session, bug: Bug) -> None:
        self._session, self._bug = session, bug
        self._given = bug.given()
        self._whole: dict[int, tuple[Tensor, SimTensor]] = {}
        args = tuple(self._taken(value, place) for place, value in enumerate(self._given))
        self.call = session.call(bug.op, args, bug.named)
        if bug.then and self.call.outputs:
            self.call = session.call(bug.then, (self.call.outputs[0],), {})

    def _taken(self, value: Any, place: int) -> Any:
        if not isinstance(value, Tensor):
            return value
        device = "cpu" if place in self._bug.on_host else "mps"
        key = value.untyped_storage()._cdata
        if key not in self._whole:
            whole = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
            self._whole[key] = whole, self._session.upload(from_torch(whole, device))
        return self._session.upload(from_torch(value, device), alias=self._whole[key][1])

    def seen(self) -> str:
        """`agrees`, `wrong`, `raises`, `fallback`, `misshapen`, or why it is not known."""
        call = self.call
        if call.outcome == "raises":
            return "raises"
        if call.outcome == "unknown":
            shaped = "for a destination of shape" in call.message
            return "misshapen" if shaped else f"unknown: {call.message}"
        if not self._agrees(call):
            return "wrong"
        return "fallback" if call.outcome == "fallback" else "agrees"

    def _agrees(self, call: Call) -> bool:
        """Results, and the memory of every argument, with what the CPU makes of them."""
        reference = self._bug.reference or overload(self._bug.op)
        expected = reference(*self._given, **self._bug.named)
        if self._bug.then:
            expected = overload(self._bug.then)(expected)
        pairs = zip(call.outputs, _flat(expected), strict=False)
        results = [(self._session.download(ours), wanted) for ours, wanted in pairs]
        found = [(ours.torch(), wanted) for ours, wanted in results[: self._bug.outputs]]
        memory = [(self._session.download(held).torch(), t) for t, held in self._whole.values()]
        return all(_close(ours, wanted) for ours, wanted in [*found, *memory])


def _flat(value: Any) -> Sequence[Tensor]:
    return value if isinstance(value, tuple | list) else (value,)


def _close(ours: Tensor, wanted: Tensor) -> bool:
    if ours.shape != wanted.shape:
        return False
    ours, wanted = (each.resolve_conj().resolve_neg() for each in (ours, wanted))
    return torch.allclose(ours.to(wanted.dtype), wanted, rtol=1e-3, atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("bug", [*WRONG, *REFUSED], ids=lambda bug: f"{bug.report} {bug.op}")
def test_a_reported_bug_is_in_one_release_and_not_in_the_other(opened: Any, bug: Bug) -> None:
    assert Side(opened(*bug.affected), bug).seen() == bug.seen
    assert Side(opened(*bug.fixed), bug).seen() == "agrees"


def test_random_orders_of_2_0_1_are_hardly_any(opened: Any) -> None:
    """`randperm-104170`: it sorts by keys that are 0 or 1, so there are two rising runs."""

    def runs(release: str, macos: str) -> int:
        session = opened(release, macos)
        call = session.call("aten::randperm", (64,), {"device": "mps"})
        order = session.download(call.outputs[0]).torch()
        assert order.sort().values.tolist() == list(range(64))
        return 1 + int((order.diff() < 0).sum())

    assert runs("2.0.1", "13.5") <= 2
    assert runs("2.13.0", "15.5") > 16
