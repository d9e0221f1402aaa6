"""Calls of user code to see whether arguments fit."""

from __future__ import annotations

import logging
import warnings

import pytest
import torch

from scanner.locate.trial import attempt, keeping


def test_outcomes() -> None:
    assert attempt(lambda: 3).output == 3
    failed = attempt(lambda: 1 / 0)
    assert failed.status == "failed"
    assert isinstance(failed.error, ZeroDivisionError)
    with torch.device("meta"):
        assert attempt(lambda: torch.ones(1).item()).status == "values"


def test_exits_are_failures_and_interruptions_pass() -> None:
    def stop(error: BaseException) -> None:
        raise error

    assert attempt(lambda: stop(SystemExit())).status == "failed"
    with pytest.raises(KeyboardInterrupt):
        attempt(lambda: stop(KeyboardInterrupt()))


def test_gradients_only_when_asked_for() -> None:
    weight = torch.ones(2, requires_grad=True)
    assert not attempt(lambda: (weight * 2).requires_grad).output
    assert attempt(lambda: torch.autograd.grad((weight * 2).sum(), weight)).status == "ok"
    assert torch.is_grad_enabled()


def test_targets_that_broadcast_do_not_fit() -> None:
    outcome = attempt(lambda: torch.nn.functional.mse_loss(torch.ones(2, 3), torch.ones(2, 1)))
    assert outcome.status == "failed"
    assert isinstance(outcome.error, UserWarning)


def test_other_warnings_and_logs_are_silent(caplog: pytest.LogCaptureFixture) -> None:
    def noisy() -> int:
        warnings.warn("look here", stacklevel=1)
        logging.getLogger("torch").error("look there")
        return 1

    assert attempt(noisy).output == 1
    assert caplog.records == []
    logging.getLogger("torch").error("again")
    assert len(caplog.records) == 1


def test_buffers_and_random_state_are_kept() -> None:
    norm = torch.nn.BatchNorm1d(3)
    state = torch.get_rng_state()
    with keeping(norm, real=True):
        norm(torch.rand(4, 3))
    assert norm.num_batches_tracked == 0
    assert torch.equal(torch.get_rng_state(), state)
