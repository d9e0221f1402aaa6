from __future__ import annotations

import pytest
import torch

from scanner.sim.graph import ops
from scanner.sim.graph.methods import Arguments, Methods, Unsupported, dtype_named
from scanner.sim.graph.recording import Descriptor
from tests.sim.graph.calls import arguments


def test_arguments_by_part() -> None:
    first, second = torch.ones(2), torch.zeros(3)
    call = arguments("concatTensors:dimension:interleave:name:", [first, second], -1, False)
    assert [tensor.shape[0] for tensor in call.tensors("concatTensors")] == [2, 3]
    assert call.integer("dimension") == -1
    assert not call.flag("interleave")
    assert "name" not in call
    assert call.get("name", "none") == "none"
    assert call.operands() == call.tensors("concatTensors")
    with pytest.raises(Unsupported, match="no argument axis"):
        call["axis"]


def test_integers_are_numbers_or_the_content_of_a_tensor() -> None:
    selector = "reshapeTensor:withShapeTensor:name:"
    shape = torch.tensor([2, -1], dtype=torch.int32)
    call = arguments(selector, torch.ones(4), shape)
    assert call.integers("withShapeTensor") == (2, -1)
    unknown = arguments(selector, torch.ones(4), shape.to("meta"))
    with pytest.raises(Unsupported, match="withShapeTensor depends on data"):
        unknown.integers("withShapeTensor")


def test_descriptors_have_defaults() -> None:
    given = Descriptor("MPSGraphPooling2DOpDescriptor", {"kernelWidth": 3})
    call = arguments("avgPooling2DWithSourceTensor:descriptor:name:", torch.ones(1), given)
    properties = call.descriptor()
    assert properties["kernelWidth"] == 3
    assert properties.get("ceilMode", False) is False
    with pytest.raises(Unsupported, match="MPSGraphPooling2DOpDescriptor without strideInX"):
        properties["strideInX"]


def test_types_without_a_counterpart() -> None:
    assert dtype_named("bfloat16") is torch.bfloat16
    for name in ("", "tensor", "float5"):
        with pytest.raises(Unsupported, match="element type"):
            dtype_named(name)


def test_a_selector_has_one_meaning() -> None:
    methods = Methods()

    def same(call: Arguments) -> torch.Tensor:
        return call.tensor("identityWithTensor")

    methods.define("identityWithTensor:name:")(same)
    with pytest.raises(ValueError, match="identityWithTensor:name: is defined twice"):
        methods.define("identityWithTensor:name:")(same)


def test_families_do_not_overlap() -> None:
    assert isinstance(ops.all_methods(), dict)
