"""The simulator as a device, over a release that only pretends."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

from scanner.backends.interface import Inconclusive
from scanner.backends.metal_sim import open_simulator
from scanner.backends.open import check_device_spec, reads_fallback_variable
from scanner.backends.sim_spec import is_simulator, sim_spec, sim_target
from scanner.errors import UsageError
from scanner.records import Target
from scanner.sim.call import Call
from scanner.sim.prepare import prepared, release

from .fake_release import FakeSession, fake_simulator


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        ("metal-sim:2.15.0", "torch==2.15.0"),
        ("metal-sim:2.15.0,macos=26.2", "torch==2.15.0,macos=26.2"),
        ("metal-sim:torch==2.9.1,chip=m3 max,ram=64", "torch==2.9.1,chip=M3 Max,ram=64"),
    ],
)
def test_a_spec_is_a_target(spec: str, target: str) -> None:
    assert is_simulator(spec)
    assert sim_target(spec).id == target
    assert sim_target(sim_spec(sim_target(spec))) == sim_target(spec)
    assert not reads_fallback_variable(spec)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("metal-sim", "none is named"),
        ("metal-sim:", "none is named"),
        ("metal-sim:2.15", "'2.15' is not a release"),
        ("metal-sim:2.15.0,macos=x", "not a macOS version"),
        ("metal-sim:jax==1", "does not begin with a framework"),
        ("metal-simulator", "no device"),
    ],
)
def test_a_bad_spec_is_refused_with_a_remedy(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        check_device_spec(spec)
    assert caught.value.remedy


def test_results_and_layouts_come_back() -> None:
    device = fake_simulator(FakeSession())
    base = torch.arange(12.0)
    views = [base[2:], base.view(3, 4).t(), base[:1].expand(5)]
    there = device.upload_all(views)
    for view, copy in zip(views, there, strict=True):
        assert (copy.shape, copy.stride(), copy.storage_offset(), copy.device.type) == (
            view.shape, view.stride(), view.storage_offset(), "mps",
        )  # fmt: skip
        assert torch.equal(device.download(copy), view)
    result = device.call("aten::neg", (there[1],), {})
    assert torch.equal(device.download(result), -views[1])
    values, places = device.call("aten::max.dim", (there[1], 0), {})
    assert (values.dtype, places.dtype, places.numel()) == (torch.float32, torch.int64, 3)


def test_aliases_and_in_place_results_stay_the_same_tensor() -> None:
    device = fake_simulator(FakeSession())
    base = torch.zeros(4)
    whole, part = device.upload_all([base, base[1:]])
    returned = device.call("aten::add_.Tensor", (whole, 1.0), {})
    assert returned is whole
    assert device.download(part).tolist() == [1.0, 1.0, 1.0]
    assert base.eq(0).all()


def test_what_an_op_writes_to_tensors_of_the_host_comes_back() -> None:
    device = fake_simulator(FakeSession())
    base = torch.arange(8.0)
    device.call("aten::copy_", (base[1::2], device.upload(torch.full((4,), 9.0)), False), {})
    assert base.tolist() == [0.0, 9.0, 2.0, 9.0, 4.0, 9.0, 6.0, 9.0]
    device.call("aten::copy_", (base[:2], base[2:4], False), {})
    assert base[:4].tolist() == [2.0, 9.0, 2.0, 9.0]


def test_a_shape_changed_in_place_is_seen() -> None:
    device = fake_simulator(FakeSession())
    tensor = device.upload(torch.arange(4.0))
    assert device.call("aten::unsqueeze_", (tensor, 0), {}) is tensor
    assert (tensor.shape, tensor.size(1), tensor.stride(0)) == ((1, 4), 4, 4)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("IndexError", IndexError), ("NotImplementedError", NotImplementedError), ("", RuntimeError)],
)
def test_the_release_s_exceptions_keep_class_and_text(kind: str, expected: type) -> None:
    said = Call("raises", "raises", message="index 7 is out of bounds", error=kind)
    device = fake_simulator(FakeSession({"aten::neg": said}))
    with pytest.raises(expected, match=r"^index 7 is out of bounds$"):
        device.call("aten::neg", (device.upload(torch.ones(1)),), {})


def test_what_is_not_known_is_no_exception_of_torch() -> None:
    unknown = Call("unknown", "native-graph", message="not executable: no graph interpreter")
    device = fake_simulator(FakeSession({"aten::neg": unknown}))
    with pytest.raises(Inconclusive, match="no graph interpreter"):
        device.call("aten::neg", (device.upload(torch.ones(1)),), {})
    assert [op for op, _ in device.seen] == ["aten::neg"]
    device.forget()
    assert device.seen == []


def test_what_the_simulator_cannot_take_is_inconclusive() -> None:
    device = fake_simulator(FakeSession())
    with pytest.raises(Inconclusive, match="sparse_coo"):
        device.upload(torch.eye(2).to_sparse())
    with pytest.raises(Inconclusive, match="nothing about speed"):
        device.timer()
    tensor = device.upload(torch.ones(2))
    with pytest.raises(Inconclusive, match="installed torch"):
        torch.add(tensor, 1)
    device.release()
    with pytest.raises(Inconclusive, match="earlier start"):
        device.download(tensor)


def test_an_argument_that_the_release_lacks_is_left_out_where_it_is_the_default() -> None:
    session = FakeSession(lacks="alpha")
    device = fake_simulator(session)
    one = device.upload(torch.ones(2))
    device.call("aten::add.Tensor", (one, one), {"alpha": 1})
    assert set(session.given) == {"self", "other"}
    device.call("aten::add.Tensor", (one, one), {"alpha": 2})
    assert session.given["alpha"] == 2


def test_an_argument_that_the_release_calls_otherwise_keeps_its_place() -> None:
    session = FakeSession()
    session.respelt["other"] = "divisor"
    device = fake_simulator(session)
    session.answers["aten::div.Tensor"] = Call("native-shader", "native-shader")
    one = device.upload(torch.ones(2))
    device.call("aten::div.Tensor", (one, one), {})
    assert list(session.given) == ["self", "divisor"]


def test_warnings_of_the_release_are_warnings() -> None:
    said = Call("native-shader", "native-shader", warnings=("an output is resized",))
    device = fake_simulator(FakeSession({"aten::neg": said}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert device.call("aten::neg", (device.upload(torch.ones(1)),), {}) is None
    assert [str(each.message) for each in caught] == ["an output is resized"]


def test_facts_name_what_is_imitated_and_all_that_results_depend_on() -> None:
    facts = fake_simulator(FakeSession()).facts
    assert (facts.backend, facts.name) == ("metal-sim", "Apple M2")
    assert (facts.framework, facts.os) == ("torch 2.9.1", "macOS 15.5 (imitated)")
    assert set(facts.details) == {
        *("simulator", "wheel", "reference", "memory", "fallback"),
    }


def test_a_release_that_is_not_prepared_says_how_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "cache_folder", lambda: tmp_path)
    unusable = open_simulator("metal-sim:2.9.1").check()
    assert unusable is not None
    assert unusable.reason == "torch 2.9.1 is not prepared for the simulator"
    assert "opscan sim prepare torch==2.9.1" in unusable.remedy


def test_a_damaged_cache_says_how_to_mend_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "2.9.1"
    folder.mkdir()
    monkeypatch.setattr(release, "cache_folder", lambda: tmp_path)
    part = prepared.Part("heap", "heap.mem", 0, 1, 7, "00")
    made = prepared.Manifest(
        prepared.FORMAT, "2.9.1", "torch.whl", "00", release.toolchain.native_digest(), (part,),
        (), (), {}, {}, 0, {},
    )  # fmt: skip
    (folder / prepared.MANIFEST).write_bytes(prepared.msgspec.json.encode(made))
    unusable = open_simulator("metal-sim:2.9.1").check()
    assert unusable is not None
    assert "damaged: heap.mem" in unusable.reason
    assert "opscan sim remove torch==2.9.1" in unusable.remedy


def test_an_unknown_chip_lists_the_known() -> None:
    with pytest.raises(UsageError, match="M99") as caught:
        open_simulator("metal-sim:2.9.1,chip=M99")
    assert "M2" in caught.value.remedy


WITHOUT_UNICORN = """
import sys
sys.modules["unicorn"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "unicorn" else found(name, *rest)
from scanner.backends.open import open_device
print(open_device("metal-sim:2.9.1").check())
"""


def test_without_the_emulator_the_package_to_install_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNICORN], capture_output=True, text=True, check=True
    )
    assert "the simulator needs unicorn" in done.stdout
    assert "opscan-metal[sim]" in done.stdout


def test_a_target_s_fallback_is_part_of_the_spec() -> None:
    target = Target(framework="torch", version="2.9.1", fallback=True)
    assert sim_target(sim_spec(target)).fallback
