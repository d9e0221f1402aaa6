"""Operands get values that their ops are defined for."""

from __future__ import annotations

from contextlib import suppress

import pytest
import torch
from torch import Tensor

from scanner.probe.draws import seed_of
from scanner.probe.indices import INDEX_ROLES
from scanner.probe.inputs import drawn
from scanner.probe.roles import DOMAIN_ROLES
from scanner.probe.saved import SAVED
from scanner.probe.schema import schema_of
from scanner.probe.structures import STRUCTURE_ROLES
from scanner.records import OpCall
from tests.probe.num_support import call, spec


def values(configuration: OpCall, seed: int = 0) -> dict[str, Tensor]:
    operands = drawn(schema_of(configuration.op), configuration, seed)
    named = zip(configuration.inputs, operands.tensors, strict=True)
    return {each.name: tensor for each, tensor in named}


def test_values_depend_on_the_configuration_and_the_seed_alone() -> None:
    configuration = call("aten::abs", spec(shape=(3,)))
    # Written down once: another number means that stored results were measured on other values.
    assert seed_of(configuration, 0) == 32390158716777903
    first = values(configuration)["self"]
    assert torch.equal(first, values(configuration)["self"])
    assert not torch.equal(first, values(configuration, seed=1)["self"])


@pytest.mark.parametrize(
    ("configuration", "name", "bound"),
    [
        (
            call("aten::gather", spec(shape=(7, 5)), spec("index", (3, 5), "int64"), dim=0),
            "index",
            7,
        ),
        (
            call("aten::embedding", spec("weight", (11, 2)), spec("indices", (40,), "int64")),
            "indices",
            11,
        ),
        (
            call("aten::index.Tensor", spec(shape=(6, 9)), spec("indices[1]", (50,), "int32")),
            "indices[1]",
            9,
        ),
        (call("aten::take", spec(shape=(3, 4)), spec("index", (30,), "int64")), "index", 12),
        (
            call(
                "aten::nll_loss_forward",
                spec(shape=(20, 6)),
                spec("target", (20,), "int64"),
                weight=None,
                reduction=1,
                ignore_index=-100,
            ),
            "target",
            6,
        ),
        (
            call(
                "aten::embedding_dense_backward",
                spec("grad_output", (30, 2)),
                spec("indices", (30,), "int64"),
                num_weights=5,
                padding_idx=-1,
                scale_grad_by_freq=False,
            ),
            "indices",
            5,
        ),
    ],
)
def test_indices_are_in_range_and_reach_its_ends(
    configuration: OpCall, name: str, bound: int
) -> None:
    drawn_values = torch.cat([values(configuration, seed)[name].reshape(-1) for seed in range(6)])
    assert int(drawn_values.min()) == 0
    assert int(drawn_values.max()) == bound - 1


def test_written_positions_are_distinct() -> None:
    line = call(
        "aten::scatter.src",
        spec(shape=(9, 4)),
        spec("index", (9, 4), "int64"),
        spec("src", (9, 4)),
        dim=0,
    )
    index = values(line)["index"]
    assert all(column.unique().numel() == 9 for column in index.unbind(1))
    pairs = call(
        "aten::index_put",
        spec(shape=(4, 5)),
        spec("indices[0]", (20,), "int64"),
        spec("indices[1]", (20,), "int64"),
        spec("values", (20,)),
        accumulate=False,
    )
    found = values(pairs)
    assert (
        len(set(zip(found["indices[0]"].tolist(), found["indices[1]"].tolist(), strict=True))) == 20
    )


def test_a_mask_selects_as_many_elements_as_there_are_values() -> None:
    configuration = call(
        "aten::index_put",
        spec(shape=(6, 6)),
        spec("indices[0]", (6, 6), "bool"),
        spec("values", (10,)),
        accumulate=False,
    )
    assert int(values(configuration)["indices[0]"].sum()) == 10


def test_matrices_are_of_the_kind_that_their_op_takes() -> None:
    definite = values(call("aten::linalg_cholesky_ex", spec(shape=(3, 8, 8)), upper=False))["self"]
    assert bool((torch.linalg.eigvalsh(definite) > 0.5).all())
    regular = values(call("aten::linalg_inv_ex", spec("A", (8, 8))))["A"]
    assert float(torch.linalg.cond(regular)) < 20
    symmetric = values(call("aten::_linalg_eigh", spec("A", (6, 6))))["A"]
    assert torch.equal(symmetric, symmetric.mT) or torch.allclose(
        symmetric, symmetric.mT, atol=1e-6
    )
    assert torch.linalg.eigvalsh(symmetric).tolist() == pytest.approx(
        [-6, -4, -2, 1, 3, 5], abs=1e-4
    )


@pytest.mark.parametrize(
    ("op", "low", "high"),
    [
        ("aten::log", 0, 10),
        ("aten::rsqrt", 0, 10),
        ("aten::acos", -1, 1),
        ("aten::acosh", 1, 10),
        ("aten::bernoulli", 0, 1),
        ("aten::atanh", -1, 1),
        ("aten::poisson", 0, 10),
    ],
)
def test_values_are_inside_the_domain(op: str, low: float, high: float) -> None:
    found = values(call(op, spec(shape=(500,))))["self"]
    assert low < float(found.min())
    assert float(found.max()) < high


def test_sequences_to_search_are_sorted() -> None:
    configuration = call(
        "aten::searchsorted.Tensor", spec("sorted_sequence", (3, 9)), spec("self", (3, 4))
    )
    sequence = values(configuration)["sorted_sequence"]
    assert torch.equal(sequence, sequence.sort(-1).values)


def test_half_precision_values_to_choose_among_do_not_tie() -> None:
    found = values(call("aten::max.dim", spec(shape=(2000,), dtype="bfloat16"), dim=0))["self"]
    assert found.unique().numel() == 2000
    assert bool(found.isfinite().all())


def test_every_line_has_one_mode() -> None:
    found = values(call("aten::mode", spec(shape=(4, 5, 6)), dim=1, keepdim=False))["self"]
    mode = found.mode(1, keepdim=True).values
    assert bool(((found == mode).sum(1) >= 3).all())
    assert found.unique().numel() > 3


def test_running_statistics_are_what_a_batch_norm_has() -> None:
    names = ("input", "weight", "bias", "running_mean", "running_var")
    inputs = [spec(name, (8, 3, 5) if name == "input" else (3,)) for name in names]
    configuration = call("aten::native_batch_norm", *inputs, training=True, momentum=0.1, eps=1e-5)
    assert float(values(configuration)["running_var"].min()) > 0


def test_saved_statistics_are_those_of_the_input() -> None:
    inputs = (
        spec("grad_out", (4, 6)),
        spec("input", (4, 6)),
        spec("mean", (4, 1)),
        spec("rstd", (4, 1)),
    )
    configuration = call(
        "aten::native_layer_norm_backward",
        *inputs,
        normalized_shape=[6],
        weight=None,
        bias=None,
        output_mask=[True, False, False],
    )
    found = values(configuration)
    assert torch.allclose(found["mean"], found["input"].mean(1, keepdim=True), atol=1e-6)
    spread = found["input"].var(1, correction=0, keepdim=True)
    assert torch.allclose(found["rstd"], (spread + 1e-5).rsqrt(), atol=1e-4)


def test_pooling_indices_are_those_of_the_forward() -> None:
    window = {
        "kernel_size": [2, 2],
        "stride": [2, 2],
        "padding": [0, 0],
        "dilation": [1, 1],
        "ceil_mode": False,
    }
    inputs = (
        spec("grad_output", (1, 1, 2, 2)),
        spec("self", (1, 1, 4, 4)),
        spec("indices", (1, 1, 2, 2), "int64"),
    )
    found = values(call("aten::max_pool2d_with_indices_backward", *inputs, **window))
    chosen = found["self"].reshape(-1)[found["indices"].reshape(-1)]
    assert torch.equal(chosen, torch.nn.functional.max_pool2d(found["self"], 2).reshape(-1))


def test_softmax_outputs_add_up_to_one() -> None:
    inputs = spec("grad_output", (5, 7)), spec("output", (5, 7))
    configuration = call("aten::_softmax_backward_data", *inputs, dim=1, input_dtype="float32")
    assert values(configuration)["output"].sum(1).tolist() == pytest.approx([1.0] * 5)


def test_foreach_operands_have_the_roles_of_their_op() -> None:
    inputs = [spec(f"self[{place}]", (50,)) for place in range(2)]
    found = values(call("aten::_foreach_sqrt_", *inputs))
    assert all(float(tensor.min()) > 0 for tensor in found.values())


def test_an_optimizer_state_is_one() -> None:
    names = ("self", "grads", "exp_avgs", "exp_avg_sqs")
    inputs = [spec(f"{name}[0]", (30,)) for name in names] + [spec("state_steps[0]", ())]
    found = values(call("aten::_fused_adam_", *inputs, lr=0.1, beta1=0.9, beta2=0.99))
    assert float(found["exp_avg_sqs[0]"].min()) > 0
    assert float(found["state_steps[0]"]) >= 1


def test_recurrences_are_not_chaotic() -> None:
    """float32 follows float64 over many steps, as with the weights that torch.nn draws."""
    steps, batch, width, hidden = 64, 2, 96, 32
    shapes = [(4 * hidden, width), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,)]
    configuration = call(
        "aten::lstm.input",
        spec("input", (steps, batch, width)),
        spec("hx[0]", (1, batch, hidden)),
        spec("hx[1]", (1, batch, hidden)),
        *(spec(f"params[{index}]", shape) for index, shape in enumerate(shapes)),
        has_biases=True,
        num_layers=1,
        dropout=0.0,
        train=False,
        bidirectional=False,
        batch_first=False,
    )
    tensors = list(values(configuration).values())
    assert all(weight.abs().max() <= hidden**-0.5 for weight in tensors[3:])

    def outputs(dtype: torch.dtype) -> Tensor:
        given = [tensor.to(dtype) for tensor in tensors]
        flags = (True, 1, 0.0, False, False, False)
        return torch.lstm(given[0], given[1:3], given[3:], *flags)[0].double()

    assert (outputs(torch.float32) - outputs(torch.float64)).abs().max() < 1e-5


def test_tables_name_arguments_that_exist() -> None:
    arguments: dict[str, set[str]] = {}
    with suppress(LookupError):  # registers the ops of its namespace, where torch has them
        schema_of("torch_nn::_linear_cross_entropy_batch_chunked")
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith(("aten::", "torch_nn::")):
            schema = schema_of(name)
            known = arguments.setdefault(schema.family, set())
            known.update(argument.name for argument in schema.arguments)
    rows = (*INDEX_ROLES, *STRUCTURE_ROLES, *DOMAIN_ROLES)
    assert not [row for row in rows if row[1] not in arguments.get(row[0], ())]
    assert not set(SAVED) - set(arguments)
