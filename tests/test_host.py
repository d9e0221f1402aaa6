from __future__ import annotations

import platform
import sys

import pytest

from opdb import query
from scanner import host
from scanner.cli.targets import choose_targets
from scanner.host import Host, this_host
from scanner.records import Target


def mac(torch: str | None = "2.9.1") -> Host:
    return Host(
        system="Darwin",
        machine="arm64",
        python="3.12.1",
        torch=torch,
        macos="15.5",
        chip="M3 Pro",
        ram=36,
        fallback=True,
    )


def test_this_machine() -> None:
    found = this_host({})
    assert (found.system, found.machine) == (platform.system(), platform.machine())
    assert found.python == platform.python_version()
    assert not found.fallback


@pytest.mark.parametrize(
    ("value", "fallback"), [("1", True), ("2", True), ("0", False), ("", False)]
)
def test_the_fallback_variable(value: str, fallback: bool) -> None:
    assert this_host({"PYTORCH_ENABLE_MPS_FALLBACK": value}).fallback is fallback


def test_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    def sysctl(*_: object, **__: object) -> object:
        return type("Done", (), {"stdout": "Apple M3 Max\n"})

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("15.5", ("", "", ""), "arm64"))
    monkeypatch.setattr(host.subprocess, "run", sysctl)
    monkeypatch.setattr(host.os, "sysconf", {"SC_PAGE_SIZE": 16384, "SC_PHYS_PAGES": 1 << 21}.get)
    found = this_host({})
    assert found.is_apple_silicon
    assert (found.macos, found.chip, found.ram) == ("15.5", "M3 Max", 32)


def test_a_mac_that_does_not_tell_its_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> object:
        raise FileNotFoundError

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(host.subprocess, "run", refused)
    assert this_host({}).chip is None


def test_the_default_target_is_this_mac() -> None:
    targets, notes = choose_targets((), mac())
    assert targets == (
        Target(
            framework="torch", version="2.9.1", macos="15.5", chip="M3 Pro", ram=36, fallback=True
        ),
    )
    assert "this Mac" in notes[0]


@pytest.mark.parametrize("machine", [mac(torch=None), this_host({})])
def test_elsewhere_it_is_the_newest_release(machine: Host) -> None:
    if machine.is_apple_silicon and machine.torch:
        pytest.skip("this is such a Mac")
    targets, notes = choose_targets((), machine)
    assert targets == (Target(framework="torch", version=query.newest()),)
    assert query.newest() in notes[0]


def test_a_mac_with_a_torch_that_is_not_known() -> None:
    targets, notes = choose_targets((), mac(torch="9.9.0"))
    assert targets[0].version == query.newest()
    assert targets[0].chip == "M3 Pro"
    assert "9.9.0" in notes[0]


def test_what_the_user_says_needs_no_note() -> None:
    targets, notes = choose_targets(("torch==2.9.1",), mac())
    assert (targets, notes) == ((Target(framework="torch", version="2.9.1"),), ())


def test_rosetta_is_no_apple_silicon() -> None:
    assert not Host(system="Darwin", machine="x86_64", python="3.12.1").is_apple_silicon
