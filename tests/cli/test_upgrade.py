from __future__ import annotations

import json

import pytest

from opdb import query
from tests.cli.conftest import Child, Invoke
from tests.samples import call


def test_every_release_is_judged_from_one_capture(invoke: Invoke, child: Child) -> None:
    child.yields("clean.py", call("aten::kthvalue.values"))
    found = invoke("upgrade", "clean.py", "-q", "-t", "torch==2.5.1", "-f", "json")
    assert found.code == 0
    (model,) = json.loads(found.out)["models"]
    assert model["smallest"] == "2.9.0"
    assert [each["version"] for each in model["releases"]] == list(query.releases())
    assert len(child.jobs) == 1


def test_the_machine_stays_the_same(invoke: Invoke, child: Child) -> None:
    found = invoke("upgrade", "clean.py", "-t", "torch==2.5.1,macos=14.7,fallback=1", "-f", "json")
    targets = [each["target"] for each in json.loads(found.out)["models"][0]["releases"]]
    assert all(target.endswith(",macos=14.7,fallback=1") for target in targets)


def test_text(invoke: Invoke, child: Child) -> None:
    child.yields("clean.py", call("aten::kthvalue.values"))
    out = invoke("upgrade", "clean.py", "-q", "--target", "torch==2.5.1").out
    assert "Smallest upgrade without errors, fallbacks or wrong results: torch 2.9.0." in out


def test_what_is_not_captured_is_3(invoke: Invoke, child: Child) -> None:
    child.fails("broken.py", "it cannot be imported")
    found = invoke("upgrade", "broken.py", "clean.py", "-q")
    assert found.code == 3
    assert "broken.py was not captured; `opscan scan` says why" in found.err
    assert "clean.py" in found.out


@pytest.mark.parametrize("target", ["torch==0.3", "jax==1", "torch==2.9.1,macos=big"])
def test_a_target_that_cannot_be_compared_is_2(invoke: Invoke, target: str) -> None:
    found = invoke("upgrade", "clean.py", "--target", target)
    assert (found.code, found.out) == (2, "")
    assert "Traceback" not in found.err
