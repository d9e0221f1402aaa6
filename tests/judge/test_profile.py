from __future__ import annotations

import msgspec

from opdb import query
from scanner.capture.lowering import (
    DENSE_ATTENTION,
    DROPOUT,
    EMPTY_NORM,
    FLOAT_TOLERANCE,
    ONE_HOT,
    SAFE_SOFTMAX,
)
from scanner.judge.profile import profile_for, profiles_for
from scanner.records import Target
from tests.samples import KERNEL, RAISES, TORCH_29, Facts


def torch(version: str) -> Target:
    return Target(framework="torch", version=version)


def _registered(holds: tuple[str, ...]) -> list[str]:
    return [name for name in holds if name.startswith("aten::")]


def test_only_kernels_are_held() -> None:
    facts = Facts({"aten::linear": KERNEL, "aten::max_pool2d": RAISES, "aten::mm": KERNEL})
    assert _registered(profile_for(TORCH_29, facts).holds) == ["aten::linear"]


def test_branches_follow_the_release() -> None:
    facts = Facts({})
    assert profile_for(torch("2.3.1"), facts).holds == (ONE_HOT,)
    assert profile_for(torch("2.11.0"), facts).holds == (
        EMPTY_NORM,
        FLOAT_TOLERANCE,
        ONE_HOT,
        SAFE_SOFTMAX,
    )
    assert profile_for(torch("2.12.0"), facts).holds == (EMPTY_NORM, FLOAT_TOLERANCE, SAFE_SOFTMAX)
    assert profile_for(torch("2.15.0"), facts).holds == (
        EMPTY_NORM,
        FLOAT_TOLERANCE,
        DROPOUT,
        SAFE_SOFTMAX,
    )


def test_some_branches_follow_the_system() -> None:
    def holds(version: str, macos: str | None) -> tuple[str, ...]:
        target = msgspec.structs.replace(torch(version), macos=macos)
        return profile_for(target, Facts({})).holds

    assert DENSE_ATTENTION in holds("2.5.1", None)
    assert DENSE_ATTENTION in holds("2.9.1", "14.7")
    assert DENSE_ATTENTION not in holds("2.9.1", "15.0")
    assert DENSE_ATTENTION not in holds("2.9.1", None)
    assert DENSE_ATTENTION not in holds("2.13.0", "14.7")


def test_targets_that_dispatch_alike_share_one_capture() -> None:
    known = Facts({("aten::linear", "2.8.0"): KERNEL, ("aten::linear", "2.10.0"): KERNEL})
    targets = [torch("2.8.0"), torch("2.10.0"), torch("2.9.1"), torch("2.8.0")]
    of, profiles = profiles_for(targets, known)
    assert of["torch==2.8.0"] == of["torch==2.10.0"] != of["torch==2.9.1"]
    # 2.10 is newer than 2.8, though not as text.
    assert [(_registered(each.holds), each.release) for each in profiles] == [
        (["aten::linear"], "2.10.0"),
        ([], "2.9.1"),
    ]


def test_the_machine_is_no_part_of_the_profile() -> None:
    on_mac = msgspec.structs.replace(TORCH_29, macos="15.5", chip="M3", fallback=True)
    _, profiles = profiles_for([TORCH_29, on_mac], query)
    assert len(profiles) == 1


def test_linear_is_held_where_it_has_a_kernel_of_its_own() -> None:
    # 1.12 dispatches _mps_linear instead, the only release to do so.
    assert "aten::linear" not in profile_for(torch("1.12.1"), query).holds
    assert "aten::linear" in profile_for(torch("1.13.1"), query).holds
    assert "aten::linear" in profile_for(torch(query.newest()), query).holds


def test_scaled_dot_product_attention_is_held_since_it_has_a_kernel() -> None:
    name = "aten::_scaled_dot_product_attention_math_for_mps"
    assert name not in profile_for(torch("2.3.0"), query).holds
    assert name in profile_for(torch("2.9.1"), query).holds
