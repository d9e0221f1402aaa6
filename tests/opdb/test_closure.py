"""What a recorded run tells about the calls of a composite kernel in a release."""

import pytest

from opdb.closure import MORE, reached
from opdb.facts import OpFact

EIGH, SVD = "aten::eigh", "aten::svd"
PINV = ("composite", {EIGH: "maybe", SVD: "maybe"})
OLD = {
    "aten::pinv": PINV,
    EIGH: ("composite", {"aten::_eigh": "always"}),
    "aten::_eigh": ("unsupported", {}),
    SVD: ("fallback", {}),
}
HERMITIAN = {"aten::pinv": (EIGH,), EIGH: ("aten::_eigh",)}
GENERAL = {"aten::pinv": (SVD,)}


def lookup(known):
    def fact(op):
        status, leads = known.get(op, ("unknown", {}))
        return OpFact(
            op=op, version="1", status=status, evidence=None, reason="", exists=True, leads=leads
        )

    return fact


def answer(recorded, release=OLD, recorder=OLD):
    return reached("aten::pinv", lookup(release), recorded, lookup(recorder))


@pytest.mark.parametrize(
    ("recorded", "status", "chain"),
    [
        (HERMITIAN, "unsupported", ("aten::pinv", EIGH, "aten::_eigh")),
        (GENERAL, "fallback", ("aten::pinv", SVD)),
    ],
)
def test_a_call_that_was_made_decides(recorded, status, chain):
    assert answer(recorded) == (status, chain, "recorded")


def test_where_no_bad_call_was_made_the_op_runs_and_the_run_says_so():
    assert answer({"aten::pinv": ("aten::mm",)}) == ("composite", ("aten::pinv",), "recorded")


def test_without_a_run_the_worst_that_may_be_called_is_open():
    assert answer({}) == ("unsupported", ("aten::pinv", EIGH, "aten::_eigh"), "open")


def test_a_run_that_was_not_seen_to_its_end_excludes_nothing():
    assert answer({"aten::pinv": ("aten::mm", MORE)})[2] == "open"
    assert answer({"aten::pinv": (SVD, MORE)}) == ("fallback", ("aten::pinv", SVD), "recorded")


def test_a_call_that_the_release_does_not_make_does_not_count():
    release = OLD | {"aten::pinv": ("composite", {SVD: "maybe"})}
    assert answer(HERMITIAN, release) == ("composite", ("aten::pinv",), "recorded")


def test_a_call_that_only_the_release_makes_is_open():
    recorder = OLD | {"aten::pinv": ("composite", {SVD: "maybe"})}
    assert answer({"aten::pinv": ("aten::mm",)}, OLD, recorder)[2] == "open"


def test_what_is_always_called_needs_no_run():
    release = OLD | {"aten::pinv": ("composite", {EIGH: "always"})}
    assert answer({}, release) == ("unsupported", ("aten::pinv", EIGH, "aten::_eigh"), "always")


def test_where_nothing_below_is_bad_nothing_is_open():
    release = OLD | {"aten::_eigh": ("native", {}), SVD: ("native", {})}
    assert answer({}, release) == ("composite", ("aten::pinv",), "always")


def test_calls_in_a_circle_end():
    release = {"aten::pinv": ("composite", {EIGH: "maybe"}), EIGH: ("composite", {EIGH: "maybe"})}
    assert answer({}, release)[0] == "composite"
