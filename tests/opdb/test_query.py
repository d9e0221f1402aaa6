"""What is known about ops. Expected facts are public: release notes, closed issues, source code."""

import pytest

from opdb import query
from scanner.errors import UsageError

COUNTS = {
    "1.12.1": 474,
    "1.13.0": 487,
    "1.13.1": 487,
    "2.0.0": 550,
    "2.0.1": 550,
    "2.1.0": 620,
    "2.1.1": 620,
    "2.1.2": 620,
    "2.2.0": 653,
    "2.2.1": 653,
    "2.2.2": 653,
    "2.3.0": 667,
    "2.3.1": 667,
    "2.4.0": 674,
    "2.4.1": 674,
    "2.5.0": 693,
    "2.5.1": 693,
    "2.6.0": 713,
    "2.7.0": 745,
    "2.7.1": 745,
    "2.8.0": 817,
    "2.9.0": 851,
    "2.9.1": 851,
    "2.10.0": 859,
    "2.11.0": 871,
    "2.12.0": 882,
    "2.12.1": 882,
    "2.13.0": 894,
    "2.14.0": 914,
    "2.14.1": 914,
    "2.15.0": 930,
}
"""Overloads in the MPS registration blocks of each release's wheel."""


def status(op, release):
    return query.lookup(op, release).status


def test_the_releases_are_known_oldest_first():
    assert query.releases() == tuple(COUNTS)
    assert query.newest() == "2.15.0"


@pytest.mark.parametrize(("release", "count"), COUNTS.items())
def test_export_has_every_registered_overload_once(release, count):
    names = list(query.export(release))
    assert len(names) == count
    assert names == sorted(set(names))
    assert all(name.startswith("aten::") for name in names)


@pytest.mark.parametrize(
    ("op", "release"),
    [
        ("kthvalue.values", "2.9.0"),
        ("_linalg_solve_ex", "2.7.0"),
        ("_linalg_solve_ex.result", "2.7.0"),
        ("linalg_cholesky_ex", "2.7.0"),
        ("upsample_bicubic2d", "2.6.0"),
        ("isin.Tensor_Tensor", "2.4.0"),
        ("grid_sampler_3d", "2.9.0"),
        ("_linalg_eigh", "2.14.0"),
        ("_ctc_loss", "2.14.0"),
    ],
)
def test_an_op_is_native_from_the_release_that_brought_it(op, release):
    known = query.releases()
    before = known[known.index(release) - 1]
    assert status(op, release) == "native"
    assert status(op, before) == "unsupported"
    fact = query.lookup(op, before)
    assert (fact.fixed_in, fact.native_since) == (release, release)
    assert query.lookup(op, release).fixed_in is None


@pytest.mark.parametrize("release", ["1.12.1", "2.1.2", "2.9.1", "2.13.0"])
def test_svd_runs_on_the_cpu_whatever_the_settings(release):
    fact = query.lookup("aten::linalg_svd.U", release)
    assert fact.status == "fallback"
    assert fact.registered == "fallback"
    assert fact.fallback_versions == ("1.12.1..2.13.0",)
    assert fact.fixed_in == "2.14.0"
    assert fact.links == ()


def test_a_fallback_that_still_holds_is_an_open_range():
    fact = query.lookup("embedding_renorm_", "2.9.1")
    assert fact.status == "fallback"
    assert fact.fallback_versions == ("1.12.1..",)
    assert fact.fixed_in is None


@pytest.mark.parametrize("op", ["_fft_r2c", "nonzero", "masked_select", "sgn.out"])
def test_early_releases_register_fallbacks(op):
    assert status(op, "1.12.1") == "fallback"
    assert status(op, "2.9.1") == "native"


def test_a_registered_function_that_only_raises_is_not_support():
    fact = query.lookup("_slow_conv2d_forward", "2.9.1")
    assert (fact.status, fact.registered) == ("unsupported", "raises")
    assert fact.exists
    assert "only raises" in fact.reason


def test_an_implicit_op_with_its_own_kernel_is_native():
    fact = query.lookup("aten::linear", "2.9.1")
    assert (fact.status, fact.composite) == ("native", "implicit")
    # 1.12 decides inside the composite kernel and calls an op of its own.
    assert status("linear", "1.12.1") == "composite"
    assert status("_mps_linear", "1.12.1") == "native"


def test_an_implicit_op_without_one_is_composite():
    fact = query.lookup("aten::matmul", "2.9.1")
    assert (fact.status, fact.composite, fact.registered) == ("composite", "implicit", None)
    assert fact.evidence == "database"


def test_a_structured_op_needs_the_kernel_of_its_out_variant():
    fact = query.lookup("_linalg_eigh", "2.13.0")
    assert fact.composite == "nonfunctional"
    assert "aten::_linalg_eigh.eigenvalues" in fact.calls
    assert "aten::_linalg_eigh.eigenvalues raises NotImplementedError" in fact.reason


@pytest.mark.parametrize(
    ("op", "called", "broken", "mended"),
    [
        ("kthvalue", "kthvalue.values", "2.5.1", "2.9.0"),
        ("frexp.Tensor", "frexp.Tensor_out", "2.9.1", "2.15.0"),
        ("logspace", "logspace.out", "2.9.1", "2.15.0"),
        ("fmod.Scalar", "fmod.Tensor", "1.12.1", "2.0.0"),
    ],
)
def test_a_kernel_for_all_backends_is_no_better_than_what_it_calls(op, called, broken, mended):
    fact = query.lookup(op, broken)
    assert (fact.status, fact.composite) == ("unsupported", "explicit")
    assert f"always calls aten::{called}" in fact.reason
    assert fact.fixed_in == mended
    assert status(op, mended) == "composite"


def test_a_kernel_that_calls_sparse_operators_makes_sparse_tensors_for_them():
    assert status("sparse_coo_tensor.size", "2.8.0") == "unsupported"
    assert status("sparse_coo_tensor.size", "2.9.0") == "composite"


def test_a_missing_kernel_says_what_the_fallback_variable_would_do():
    fact = query.lookup("aten::kthvalue.values", "2.5.1")
    assert fact.status == "unsupported"
    assert fact.registered is None
    assert fact.cpu
    assert "PYTORCH_ENABLE_MPS_FALLBACK=1 it runs on the CPU" in fact.reason
    assert fact.links == ("https://github.com/pytorch/pytorch/issues/77764",)


def test_without_a_cpu_kernel_the_variable_does_not_help():
    fact = query.lookup("_cudnn_rnn", "2.9.1")
    assert (fact.status, fact.cpu) == ("unsupported", False)
    assert "does not help" in fact.reason


def test_a_sparse_accessor_raises_for_dense_tensors():
    fact = query.lookup("aten::indices", "2.9.1")
    assert (fact.status, fact.composite) == ("unsupported", "raises")


def test_sparse_keys_are_apart():
    assert query.lookup("add.Tensor", "2.9.1", "SparseMPS").status == "native"
    assert query.lookup("add.Tensor", "2.8.0", "SparseMPS").status == "unsupported"
    assert query.lookup("add.Tensor", "2.8.0").status == "native"
    assert len(query.registered("2.9.1", "SparseMPS")) == 107
    assert len(query.registered("2.9.1", "SparseCsrMPS")) == 13
    assert query.registered("2.8.0", "SparseMPS") == ()


@pytest.mark.parametrize(
    ("op", "variant", "group", "view"),
    [
        ("add.Tensor", "functional", "add.Tensor", False),
        ("add_.Tensor", "inplace", "add.Tensor", False),
        ("add.out", "out", "add.Tensor", False),
        ("__ilshift__.Scalar", "inplace", "__lshift__.Scalar", False),
        ("transpose.int", "functional", "transpose.int", True),
        ("split.Tensor", "functional", "split.Tensor", True),
        ("transpose_", "inplace", "transpose.int", False),
        ("native_batch_norm", "functional", "native_batch_norm", False),
        ("_native_batch_norm_legit", "mutable", "_native_batch_norm_legit", False),
    ],
)
def test_variants_and_views(op, variant, group, view):
    fact = query.lookup(op, "2.9.1")
    assert (fact.variant, fact.group, fact.is_view) == (variant, f"aten::{group}", view)
    assert fact.inplace == (variant == "inplace")


@pytest.mark.parametrize(
    ("op", "release", "reason"),
    [
        ("_fused_rms_norm", "1.12.1", "not an operator of torch 1.12.1 (first seen in 2.8.0)"),
        ("symeig", "2.9.1", "not an operator of torch 2.9.1 (last seen in 1.13.1)"),
        ("no_such_op", "2.9.1", "not an operator of any torch release from 1.12.1 to 2.15.0"),
        ("add.Tenso", "2.9.1", "not an operator of any torch release from 1.12.1 to 2.15.0"),
        ("op", "2.9.1", "not an operator of any torch release from 1.12.1 to 2.15.0"),
        ("torchvision::nms", "2.9.1", "opdb knows PyTorch's own operators"),
    ],
)
def test_an_op_that_a_release_lacks_is_unknown(op, release, reason):
    fact = query.lookup(op, release)
    assert (fact.status, fact.evidence, fact.exists) == ("unknown", None, False)
    assert reason in fact.reason


def test_an_unknown_op_of_another_namespace_keeps_it():
    assert query.lookup("torchvision::nms", "2.9.1").op == "torchvision::nms"


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("2.9.1", "2.9.1"),
        (" 2.9.1 ", "2.9.1"),
        ("v2.9.1", "2.9.1"),
        ("torch==2.9.1", "2.9.1"),
        ("2.9.1+cpu", "2.9.1"),
        ("2.9", "2.9.1"),
        ("2.10", "2.10.0"),
        ("1.12", "1.12.1"),
        ("2.15.0", "2.15.0"),
    ],
)
def test_releases_that_a_user_may_name(text, release):
    assert query.resolve_release(text) == release


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("2.9.7", "2.9.0, 2.9.1"),
        ("2.99.0", "2.15.0"),
        ("1.11.0", "1.12.1"),
        ("2", "2.0.0"),
        ("2.1", None),
        ("banana", "2.15.0"),
        ("", "2.15.0"),
    ],
)
def test_an_unknown_release_lists_near_ones(text, near):
    if near is None:
        assert query.resolve_release(text) == "2.1.2"
        return
    with pytest.raises(UsageError, match="is not known to opdb") as caught:
        query.resolve_release(text)
    assert near in caught.value.remedy


def test_every_op_of_a_release_has_a_status():
    facts = list(query.list_ops("2.9.1"))
    assert len(facts) == 3180
    assert [fact.op for fact in facts] == sorted({fact.op for fact in facts})
    assert {fact.status for fact in facts} == {"native", "composite", "fallback", "unsupported"}
    native = [fact.op for fact in query.list_ops("2.9.1", "native")]
    assert native == [fact.op for fact in facts if fact.status == "native"]
    assert len(native) == 847


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("kthvalu", "aten::kthvalue"),
        ("aten::linalg_sdv", "aten::linalg_svd"),
        ("add", "aten::add.Tensor"),
        ("grid_sampler3d", "aten::grid_sampler_3d"),
    ],
)
def test_a_misspelled_op_is_suggested(typed, meant):
    assert meant in query.suggest(typed)


def test_nothing_is_suggested_for_nonsense():
    assert query.suggest("qqqqqqqqqqqq") == ()
