import pytest

from opdb.facts import Basis, judge, plain, qualified

OPS = {
    "gone": Basis(),
    "kernel": Basis(True, "kernel", "none", (), True),
    "kernel_and_composite": Basis(True, "kernel", "implicit", (), False),
    "fallback": Basis(True, "fallback", "implicit", (), True),
    "raises": Basis(True, "raises", "explicit", (), True),
    "implicit": Basis(True, "", "implicit", (), False),
    "explicit": Basis(True, "", "explicit", ("kernel", "implicit"), False),
    "structured": Basis(True, "", "nonfunctional", ("missing",), True),
    "twice_removed": Basis(True, "", "explicit", ("kernel", "structured"), False),
    "to_fallback": Basis(True, "", "explicit", ("fallback",), False),
    "to_both": Basis(True, "", "explicit", ("fallback", "missing"), False),
    "loop": Basis(True, "", "explicit", ("pool",), False),
    "pool": Basis(True, "", "explicit", ("loop", "missing"), False),
    "to_sparse": Basis(True, "", "explicit", ("sparse_only",), False),
    "sparse_only": Basis(True, "", "none", (), True, sparse=True),
    "always_raises": Basis(True, "", "raises", (), True),
    "missing": Basis(True, "", "none", (), True),
    "missing_everywhere": Basis(True, "", "none", (), False),
}


@pytest.mark.parametrize(
    ("op", "status", "says"),
    [
        ("gone", "unknown", "not an operator"),
        ("kernel", "native", "a kernel is registered"),
        ("kernel_and_composite", "native", "a kernel is registered"),
        ("fallback", "fallback", "whatever the settings"),
        ("raises", "unsupported", "only raises an error"),
        ("implicit", "composite", "decomposed"),
        ("explicit", "composite", "calls other operators"),
        ("structured", "unsupported", "always calls aten::missing; no kernel is registered"),
        ("twice_removed", "unsupported", "aten::structured; its kernel always calls aten::missing"),
        ("to_fallback", "fallback", "always calls aten::fallback"),
        ("to_both", "unsupported", "always calls aten::missing"),
        ("to_sparse", "composite", "calls other operators"),
        ("sparse_only", "unsupported", "no kernel is registered for MPS"),
        ("loop", "unsupported", "always calls aten::missing"),
        ("always_raises", "unsupported", "for all backends that raises"),
        ("missing", "unsupported", "with PYTORCH_ENABLE_MPS_FALLBACK=1 it runs on the CPU"),
        ("missing_everywhere", "unsupported", "does not help, the CPU has no kernel either"),
    ],
)
def test_status_follows_the_dispatcher(op, status, says):
    found, reason = judge(op, "MPS", OPS.__getitem__)
    assert found == status
    assert says in reason


def test_sparse_keys_have_no_fallback():
    status, reason = judge("missing", "SparseMPS", OPS.__getitem__)
    assert status == "unsupported"
    assert "FALLBACK" not in reason
    assert "SparseMPS" in reason


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("aten::add.Tensor", "add.Tensor"),
        ("aten.add.Tensor", "add.Tensor"),
        ("torch.ops.aten.add.Tensor", "add.Tensor"),
        ("torch.ops.aten.linear.default", "linear"),
        ("aten::linear.default", "linear"),
        (" linear ", "linear"),
        ("prims::mul", "prims::mul"),
    ],
)
def test_spellings_of_an_op(spelled, name):
    assert plain(spelled) == name


def test_qualifying_adds_the_namespace_once():
    assert qualified("add.Tensor") == "aten::add.Tensor"
    assert qualified("prims::mul") == "prims::mul"
    assert qualified("") == ""
