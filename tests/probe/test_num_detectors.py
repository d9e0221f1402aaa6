"""Shapes of failure and broken promises, each on the smallest tensors that show it."""

from __future__ import annotations

import torch

from scanner.probe.detectors import clobbered, failure_shapes, ignored, metadata, nondeterministic
from scanner.probe.inputs import drawn
from scanner.probe.outcome import Detection
from scanner.probe.poison import PATTERNS, still_poisoned
from scanner.probe.schema import schema_of
from scanner.probe.verdict import raised_status
from tests.probe.num_support import call, spec


def found(*detections: Detection) -> list[tuple[str, str]]:
    return [(detection.kind, detection.message) for detection in detections]


def test_a_failing_output_is_named_by_its_shape() -> None:
    right = torch.arange(1.0, 9.0)
    wrong = torch.ones(8, dtype=torch.bool)
    assert found(*failure_shapes("0", torch.zeros(8), right, wrong)) == [
        ("all-zero", "every element is zero")
    ]
    assert found(*failure_shapes("0", torch.full((8,), 7.0), right, wrong)) == [
        ("constant", "every element is 7.0")
    ]
    tile = right.clone()
    tile[2:6] = 0
    assert found(*failure_shapes("0", tile, right, tile == 0)) == [
        ("zero-tile", "4 neighbouring elements from flat index 2 are zero")
    ]
    tile[2] = 3
    assert found(*failure_shapes("0", tile, right, tile == 0)) == []


def test_dtype_and_shape_must_be_the_cpus() -> None:
    ours, theirs = torch.ones(2, 3, dtype=torch.float64), torch.ones(3, 2)
    kinds = [d.kind for d in metadata("0", ours, theirs, exact_strides=True, promised=None)]
    assert kinds == ["dtype", "shape"]


def test_strides_must_be_the_cpus_or_the_promised_ones() -> None:
    theirs = torch.ones(2, 3)
    turned = torch.ones(3, 2).t()
    (detection,) = metadata("0", turned, theirs, exact_strides=True, promised=None)
    assert detection.message == "stride is (1, 2) on the device, (3, 1) on the CPU"
    assert not list(metadata("0", turned, theirs, exact_strides=True, promised=(1, 2)))
    assert not list(metadata("0", turned, theirs, exact_strides=False, promised=None))


def test_gaps_between_elements_are_never_a_choice_of_layout() -> None:
    gaps = torch.ones(2, 3, 2)[..., 0]
    (detection,) = metadata("0", gaps, torch.ones(2, 3), exact_strides=False, promised=None)
    assert detection.kind == "stride"


def test_strides_of_single_elements_mean_nothing() -> None:
    ours = torch.ones(4).as_strided((1, 4), (99, 1))
    assert not list(metadata("0", ours, torch.ones(1, 4), exact_strides=True, promised=None))


def test_an_input_that_is_only_read_must_stay_as_it_is() -> None:
    configuration = call("aten::abs", spec(shape=(4,)))
    before = drawn(schema_of("aten::abs"), configuration, 0)
    after = before.storages[0].clone()
    assert not list(clobbered(before, [after], ["self"], frozenset()))
    after[1:3] = 5
    assert found(*clobbered(before, [after], ["self"], frozenset())) == [
        ("input-clobbered", "2 elements of an argument that the op only reads have changed")
    ]


def test_a_written_view_must_not_be_written_past() -> None:
    view = spec(shape=(2,), stride=(2,), offset=1)
    before = drawn(schema_of("aten::abs_"), call("aten::abs_", view), 0)
    after = before.storages[0].clone()
    after[1::2] = 9
    assert not list(clobbered(before, [after], ["self"], frozenset({0})))
    after[2] = 9
    assert found(*clobbered(before, [after], ["self"], frozenset({0}))) == [
        ("out-of-bounds", "1 elements outside the argument's view have changed")
    ]


def test_an_argument_left_as_it_was_is_noticed_if_the_cpu_changed_it() -> None:
    before, after = torch.zeros(3), torch.ones(3)
    (detection,) = ignored("self", before.clone(), before, after)
    assert detection.kind == "in-place-ignored"
    assert not list(ignored("self", before.clone(), before, before.clone()))
    assert not list(ignored("self", after, before, after))


def test_runs_that_differ_are_noted_with_how_much() -> None:
    first = torch.tensor([1.0, torch.nan, 3.0])
    assert not list(nondeterministic("0", first, first.clone()))
    (detection,) = nondeterministic("0", first, torch.tensor([1.0, torch.nan, 4.0]))
    assert detection.message == "1 of 3 elements differ between two runs on equal inputs"


def test_only_what_shows_both_poisons_was_never_written() -> None:
    runs = [torch.full((16,), byte, dtype=torch.uint8).view(torch.float32) for byte in PATTERNS]
    right = torch.ones(4)
    assert still_poisoned(runs[0], runs[1], right) == 4
    assert still_poisoned(runs[0], runs[0], right) == 0
    runs[1][:3] = 1
    assert still_poisoned(runs[0], runs[1], right) == 1


def test_what_a_device_raises_tells_what_it_lacks() -> None:
    cases = {
        NotImplementedError("no kernel"): ("unsupported", False),
        TypeError("MPS does not support float64"): ("unsupported", False),
        RuntimeError("MPS backend out of memory"): ("unknown", False),
        RuntimeError("CUDA error: device-side assert triggered"): ("crash", True),
    }
    for error, (status, lost) in cases.items():
        told = raised_status(error)
        assert (told[0], told[2]) == (status, lost)
