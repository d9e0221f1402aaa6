"""Whole steps of every captured model of a scan, on its device."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from scanner.capture.client import Captured, SourceCapture
from scanner.capture.protocol import Job
from scanner.probe.whole import WORKER, Whole, run_whole
from scanner.probe.whole_protocol import WholeJob

if TYPE_CHECKING:
    from scanner.pipeline import Plan

__all__ = ["whole_steps"]


def whole_steps(
    plan: Plan, device: str, captures: Sequence[SourceCapture], jobs: Sequence[Job | None]
) -> list[Whole]:
    """What became of each model's whole steps, in the order of the models; [] when not asked.

    `jobs` load the sources of the captures, with the profile that the device dispatches by.
    """
    if not (plan.steps or plan.batches):
        return []
    launch = replace(plan.launch, command=(sys.executable, "-m", WORKER))
    wholes: list[Whole] = []
    for job, capture in zip(jobs, captures, strict=True):
        entries = tuple(each.entry for each in capture.models if isinstance(each, Captured))
        done: Mapping[str, Whole] = {}
        if entries and job is not None:
            wanted = WholeJob(
                job=job, entries=entries, device=device, steps=plan.steps, batches=plan.batches
            )
            done = run_whole(wanted, launch)
        wholes += [done.get(model.entry, Whole()) for model in capture.models]
    return wholes
