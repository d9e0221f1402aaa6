"""Kernels that torch registers for MPS from Python."""

from __future__ import annotations

import pytest

from opdb import query
from opdb.build.python_kernels import python_kernels


def test_calls_of_impl_for_mps():
    source = """
_lib = Library("aten", "IMPL")
_lib.impl("native_group_norm", native_group_norm, "MPS")
_lib.impl("add.Tensor", add, "CUDA")
other.define("x")
"""
    assert python_kernels(source) == {"native_group_norm"}


def test_a_library_that_is_made_for_mps():
    source = """
mps_lib = torch.library.Library("aten", "IMPL", "MPS")
mps_lib.impl("aten::linalg_lu_solve.out", linalg_lu_solve_out_mps)
cpu = torch.library.Library("aten", "IMPL", "CPU")
cpu.impl("aten::add.out", add)
"""
    assert python_kernels(source) == {"linalg_lu_solve.out"}


@pytest.mark.parametrize(
    ("release", "status"),
    [("2.9.1", "unsupported"), ("2.10.0", "composite"), ("2.13.0", "composite")],
)
def test_solving_with_lu_factors(release, status):
    """`torch._refs.linalg`, which `import torch` runs, has a kernel in 2.10 to 2.13."""
    assert query.lookup("aten::linalg_lu_solve", release).status == status


def test_an_overload_that_is_not_written_out_is_not_passed_over():
    with pytest.raises(ValueError, match="registered by expression"):
        python_kernels('for name in names:\n    _lib.impl(name, f, "MPS")\n')


@pytest.mark.parametrize(
    ("release", "registered", "status"),
    [
        ("1.13.1", None, "unsupported"),
        ("2.0.0", "decomposition", "composite"),
        ("2.12.1", "decomposition", "composite"),
        ("2.13.0", "kernel", "native"),
    ],
)
def test_the_gradient_of_group_norm(release, registered, status):
    """Public history: pytorch #88331 (1.13 has none), the prim since 2.0, a kernel since 2.13."""
    fact = query.lookup("aten::native_group_norm_backward", release)
    assert (fact.registered, fact.status) == (registered, status)


def test_the_wheels_registration_blocks_are_exported_as_they_are():
    assert "aten::native_group_norm_backward" not in set(query.export("2.9.1"))
