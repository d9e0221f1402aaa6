from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opdb import query
from scanner.errors import UsageError
from scanner.judge.target import parse_target, parse_targets
from scanner.records import Target


def resolve(text: str) -> str:
    return query.resolve_release(text) if text else query.newest()


def test_everything_that_a_target_can_say() -> None:
    found = parse_target("torch==2.9.1,macos=15.5,chip=M3,ram=16,fallback=1", resolve)
    assert found == Target(
        framework="torch", version="2.9.1", macos="15.5", chip="M3", ram=16, fallback=True
    )


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("torch==2.9.1", "torch==2.9.1"),
        ("torch=2.9.1", "torch==2.9.1"),
        (" torch==2.9.1 , macos = 15 ", "torch==2.9.1,macos=15"),
        ("pytorch==2.9.1", "torch==2.9.1"),
        ("torch==2.9", "torch==2.9.1"),
        ("torch==2.9.1+cpu", "torch==2.9.1"),
        ("torch", f"torch=={query.newest()}"),
        ("torch==2.9.1,chip=m3-pro", "torch==2.9.1,chip=M3 Pro"),
        ("torch==2.9.1,chip=Apple M1 Ultra", "torch==2.9.1,chip=M1 Ultra"),
        ("torch==2.9.1,ram=16GB", "torch==2.9.1,ram=16"),
        ("torch==2.9.1,fallback=0", "torch==2.9.1"),
        ("torch==2.9.1,fallback=on", "torch==2.9.1,fallback=1"),
    ],
)
def test_spellings(text: str, spelled: str) -> None:
    assert parse_target(text, resolve).id == spelled


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("", "does not begin with a framework", "torch==2.9.1"),
        ("macos=15.5", "does not begin with a framework", "torch==2.9.1"),
        ("2.9.1", "does not begin with a framework", "torch==2.9.1"),
        ("jax==0.4", "does not begin with a framework", "torch==2.9.1"),
        ("tensorflow==2.18", "TensorFlow targets are not supported yet", "torch"),
        ("torch==2.99", "2.99", "2.15.0"),
        ("torch==", "gives no version", "torch==2.9.1"),
        ("torch==2.9.1,macos=\u0967\u096b", "is not a macOS version", ""),
        ("torch==2.9.1,chip=M\u0663", "is not an Apple-silicon chip", ""),
        ("torch==2.9.1,ram=\u0663", "is not a memory size", ""),
        (f"torch==2.9.1,ram={'9' * 5000}", "is not a memory size", ""),
        ("torch==2.9.1,mac=15", "unknown part 'mac=15'", "Did you mean macos?"),
        ("torch==2.9.1,colour=red", "unknown part", "Known parts: macos, chip, ram, fallback"),
        ("torch==2.9.1,ram", "gives no value for ram", ""),
        ("torch==2.9.1,ram=", "gives no value for ram", ""),
        ("torch==2.9.1,ram=16,ram=32", "says ram twice", ""),
        ("torch==2.9.1,ram=lots", "not a memory size", "ram=16"),
        ("torch==2.9.1,ram=0", "not a memory size", "ram=16"),
        ("torch==2.9.1,macos=Sequoia", "not a macOS version", "macos=15.5"),
        ("torch==2.9.1,macos=12.2", "has no MPS", "12.3"),
        ("torch==2.9.1,macos=11", "has no MPS", "12.3"),
        ("torch==2.9.1,chip=i9", "not an Apple-silicon chip", "chip=M3"),
        ("torch==2.9.1,fallback=maybe", "neither on nor off", "fallback=1"),
    ],
)
def test_each_mistake_is_named(text: str, message: str, remedy: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_target(text, resolve)
    assert message in raised.value.message
    assert remedy in raised.value.remedy


def test_macos_12_alone_is_taken_as_its_last_version() -> None:
    assert parse_target("torch==2.9.1,macos=12", resolve).macos == "12"


def test_equal_targets_count_once_and_order_is_kept() -> None:
    found = parse_targets(["torch==2.9.1", "torch==2.8.0", "torch==2.9"], resolve)
    assert [target.version for target in found] == ["2.9.1", "2.8.0"]


targets = st.builds(
    Target,
    framework=st.just("torch"),
    version=st.sampled_from(query.releases()),
    macos=st.none() | st.sampled_from(["12.3", "13", "15.5.1", "26.0"]),
    chip=st.none() | st.sampled_from(["M1", "M2 Pro", "M3 Max", "M10 Ultra"]),
    ram=st.none() | st.integers(1, 1024),
    fallback=st.booleans(),
)


@given(targets)
def test_the_id_of_a_target_reads_back_as_the_target(target: Target) -> None:
    assert parse_target(target.id, resolve) == target


@given(st.text(max_size=40))
def test_any_text_is_a_target_or_one_clear_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_target(text, resolve).framework == "torch"
