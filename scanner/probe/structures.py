"""Values whose meaning is in their arrangement: matrices of a kind, orders, partitions, lengths."""

from __future__ import annotations

import torch
from torch import Tensor

from scanner.probe.draws import Draw, Operand, integers, normal, uniform

__all__ = ["STRUCTURE_ROLES"]


def _wide(operand: Operand) -> torch.dtype:
    return torch.complex128 if operand.dtype.is_complex else torch.float64


def _square(operand: Operand) -> Tensor | None:
    """Normal square matrices, or None when the operand has another shape (an expanded one)."""
    if len(operand.shape) < 2 or operand.shape[-1] != operand.shape[-2]:
        return None
    return torch.randn(operand.shape, generator=operand.generator, dtype=_wide(operand))


def _definite(operand: Operand) -> Tensor:
    """Hermitian positive definite, condition number below ten."""
    matrix = _square(operand)
    if matrix is None:
        return normal(operand)
    size = max(matrix.shape[-1], 1)
    eye = torch.eye(size, dtype=matrix.dtype)[: matrix.shape[-1], : matrix.shape[-1]]
    return operand.cast(matrix @ matrix.mH / size + eye)


def _regular(operand: Operand) -> Tensor:
    """Far from singular: a small normal matrix around twice the identity."""
    matrix = _square(operand)
    if matrix is None:
        return normal(operand)
    size = matrix.shape[-1]
    return operand.cast(matrix / max(size, 1) ** 0.5 / 2 + 2 * torch.eye(size, dtype=matrix.dtype))


def _symmetric(operand: Operand) -> Tensor:
    """Hermitian with eigenvalues that keep a distance from each other and from zero."""
    matrix = _square(operand)
    if matrix is None or not matrix.numel():
        return normal(operand)
    basis = torch.linalg.qr(matrix).Q
    values = torch.arange(1, matrix.shape[-1] + 1, dtype=torch.float64)
    values = values * torch.where(torch.arange(matrix.shape[-1]) % 2 == 0, 1.0, -1.0)
    return operand.cast((basis * values.to(matrix.dtype)) @ basis.mH)


def _separated(operand: Operand) -> Tensor:
    """A matrix whose singular values keep a distance: its factors are then well conditioned."""
    if len(operand.shape) < 2 or 0 in operand.shape:
        return normal(operand)
    draw = torch.randn(operand.shape, generator=operand.generator, dtype=_wide(operand))
    left, values, right = torch.linalg.svd(draw, full_matrices=False)
    spaced = torch.arange(values.shape[-1], 0, -1, dtype=torch.float64)
    return operand.cast((left * spaced.to(left.dtype)) @ right)


def _triangular(operand: Operand) -> Tensor:
    """Both triangles filled (an op must read one), the diagonal dominant and positive."""
    matrix = _square(operand)
    if matrix is None:
        return normal(operand)
    size = max(matrix.shape[-1], 1)
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
    return operand.cast(matrix / (2 * size) + 2 * eye)


def _ascending(operand: Operand) -> Tensor:
    """Sorted along the last dimension."""
    values = normal(operand)
    return values.sort(-1).values if operand.shape else values


def _order(operand: Operand) -> Tensor:
    """A permutation along the last dimension (`sorter`): the one that sorts the sequence is saved
    elsewhere, so this is the identity."""
    last = operand.shape[-1] if operand.shape else 1
    return operand.cast(torch.arange(last).expand(operand.shape).clone())


def _hermitian_half(operand: Operand) -> Tensor:
    """The half of a spectrum that a real signal has: the other values are not defined for c2r."""
    dims = [int(dim) for dim in operand.attribute("dim", [-1])]
    last = int(operand.attribute("last_dim_size", 1))
    shape = list(operand.shape)
    shape[dims[-1]] = last
    if 0 in shape or operand.shape[dims[-1]] != last // 2 + 1:
        return normal(operand)
    real = torch.float64 if operand.dtype == torch.complex128 else torch.float32
    signal = torch.randn(shape, generator=operand.generator, dtype=real)
    return operand.cast(torch.fft.rfftn(signal, dim=dims))


def _factors(operand: Operand) -> Tensor:
    """Their product along the reduced dimension neither overflows nor vanishes."""
    if not (operand.dtype.is_floating_point or operand.dtype.is_complex):
        return integers(operand, -1, 3)
    dim = operand.attribute("dim")
    shape = operand.shape
    count = shape[int(dim)] if isinstance(dim, int) and shape else torch.Size(shape).numel()
    exponents = torch.randn(shape, generator=operand.generator, dtype=operand.working)
    values = torch.exp(exponents / max(count, 1) ** 0.5)
    return operand.cast(torch.where(operand.unit() < 0.5, -values, values))


def _one_mode(operand: Operand) -> Tensor:
    """In each line along `dim` one value has the majority: of two modes, either may be given."""
    if not operand.shape:
        return normal(operand)
    dim = int(operand.attribute("dim", -1))
    rank = torch.rand(operand.shape, generator=operand.generator).argsort(dim)
    often = integers(operand, 1, 4).narrow(dim, 0, 1) if operand.shape[dim] else normal(operand)
    seldom = operand.cast(rank + 4) if operand.dtype != torch.bool else torch.zeros_like(rank) > 1
    return torch.where(rank <= operand.shape[dim] // 2, often, seldom)


def _partition(total: int, parts: int, generator: torch.Generator) -> Tensor:
    """`parts` whole numbers ≥ 0 that add up to `total`."""
    if parts == 0:
        return torch.empty(0, dtype=torch.int64)
    cuts = torch.randint(0, total + 1, (parts - 1,), generator=generator).sort().values
    edges = torch.cat([torch.tensor([0]), cuts, torch.tensor([total])])
    return edges.diff()


def _segment_lengths(operand: Operand) -> Tensor:
    """Lengths that add up to the axis which is segmented."""
    data = operand.spec("data")
    axis = int(operand.attribute("axis", 0))
    if data is None or not operand.shape:
        return integers(operand, 1, 2)
    rows = int(torch.Size(operand.shape[:-1]).numel())
    lines = [
        _partition(data.shape[axis], operand.shape[-1], operand.generator) for _ in range(rows)
    ]
    return operand.cast(torch.stack(lines).reshape(operand.shape))


def _segment_offsets(operand: Operand) -> Tensor:
    """Ascending from zero to the length of the axis."""
    data = operand.spec("data")
    axis = int(operand.attribute("axis", 0))
    total = data.shape[axis] if data else 1
    values = integers(operand, 0, total + 1).sort(-1).values
    if operand.shape and operand.shape[-1]:
        values[..., 0] = 0
        values[..., -1] = total
    return values


def _repeats(operand: Operand) -> Tensor:
    """How often to repeat; adds up to `output_size` where that is given."""
    total = operand.attribute("output_size")
    if total is None or len(operand.shape) != 1:
        return integers(operand, 0, 4)
    return operand.cast(_partition(int(total), operand.shape[0], operand.generator))


def _sequence_lengths(operand: Operand) -> Tensor:
    """Descending, the longest as long as the batch (`pack_padded_sequence`)."""
    source = operand.spec("input")
    first = bool(operand.attribute("batch_first", False))
    longest = source.shape[1 if first else 0] if source and len(source.shape) > 1 else 1
    lengths = integers(operand, 1, longest + 1).sort(descending=True).values
    if lengths.numel():
        lengths[0] = longest
    return lengths


def _input_lengths(operand: Operand) -> Tensor:
    """CTC inputs as long as their tensor."""
    scores = operand.spec("log_probs")
    longest = scores.shape[0] if scores and scores.shape else 1
    return integers(operand, longest, longest + 1)


def _target_lengths(operand: Operand) -> Tensor:
    """CTC targets: rows as long as their tensor (or the saved table) says, or parts of a line."""
    targets, table = operand.spec("targets"), operand.spec("log_alpha")
    if targets is None or not operand.shape:
        return integers(operand, 1, 2)
    if len(targets.shape) == 1:
        parts = _partition(targets.shape[0], operand.shape[0], operand.generator)
        return operand.cast(parts.reshape(operand.shape))
    longest = (table.shape[-1] - 1) // 2 if table else targets.shape[1]
    return integers(operand, longest, longest + 1)


def _log_probabilities(operand: Operand) -> Tensor:
    """Logarithms of probabilities over the last dimension."""
    values = torch.randn(operand.shape, generator=operand.generator, dtype=torch.float64)
    return operand.cast(values.log_softmax(-1) if operand.shape else values)


def _class_log_probabilities(operand: Operand) -> Tensor:
    """Logarithms of probabilities over the classes: dimension 1, or the only one."""
    values = torch.randn(operand.shape, generator=operand.generator, dtype=torch.float64)
    dim = 1 if len(operand.shape) > 1 else 0
    return operand.cast(values.log_softmax(dim) if operand.shape else values)


def _simplex(operand: Operand) -> Tensor:
    """Positive, adding up to one along the last dimension."""
    values = torch.rand(operand.shape, generator=operand.generator, dtype=torch.float64) + 0.1
    return operand.cast(values / values.sum(-1, keepdim=True) if operand.shape else values)


def _rows(names: tuple[str, ...], argument: str, draw: Draw) -> dict[tuple[str, str], Draw]:
    return {(name, argument): draw for name in names}


STRUCTURE_ROLES: dict[tuple[str, str], Draw] = {
    **_rows(("linalg_cholesky_ex", "cholesky"), "self", _definite),
    **_rows(("cholesky_inverse", "ormqr"), "self", _triangular),
    **_rows(("linalg_inv_ex", "_linalg_solve_ex", "_linalg_det"), "A", _regular),
    **_rows(("_linalg_slogdet", "linalg_lu_factor_ex", "linalg_lu_factor"), "A", _regular),
    **_rows(("linalg_lu",), "A", _regular),
    **_rows(("inverse",), "self", _regular),
    **_rows(("_linalg_eigh",), "A", _symmetric),
    **_rows(("linalg_eigh", "linalg_eig", "linalg_eigvals"), "self", _symmetric),
    **_rows(("_linalg_eigvals", "linalg_ldl_factor_ex"), "self", _symmetric),
    **_rows(("_linalg_svd", "linalg_qr"), "A", _separated),
    **_rows(("geqrf", "linalg_lstsq", "linalg_pinv"), "self", _separated),
    ("linalg_solve_triangular", "self"): _triangular,
    ("triangular_solve", "A"): _triangular,
    ("cholesky_solve", "input2"): _triangular,
    ("_cholesky_solve_helper", "A"): _triangular,
    ("linalg_matrix_exp", "self"): lambda operand: operand.cast(
        _regular(operand) / 4 if len(operand.shape) > 1 else normal(operand)
    ),
    ("searchsorted", "sorted_sequence"): _ascending,
    ("searchsorted", "sorter"): _order,
    ("bucketize", "boundaries"): _ascending,
    ("histogram", "bins"): _ascending,
    ("_fft_c2r", "self"): _hermitian_half,
    ("mode", "self"): _one_mode,
    ("prod", "self"): _factors,
    ("cumprod", "self"): _factors,
    ("segment_reduce", "lengths"): _segment_lengths,
    ("segment_reduce", "offsets"): _segment_offsets,
    ("_segment_reduce_backward", "lengths"): _segment_lengths,
    ("_segment_reduce_backward", "offsets"): _segment_offsets,
    ("repeat_interleave", "repeats"): _repeats,
    ("_pack_padded_sequence", "lengths"): _sequence_lengths,
    ("_ctc_loss", "input_lengths"): _input_lengths,
    ("_ctc_loss", "target_lengths"): _target_lengths,
    ("_ctc_loss", "log_probs"): _log_probabilities,
    ("_ctc_loss_backward", "input_lengths"): _input_lengths,
    ("_ctc_loss_backward", "target_lengths"): _target_lengths,
    ("_ctc_loss_backward", "log_probs"): _log_probabilities,
    ("nll_loss_forward", "self"): _class_log_probabilities,
    ("nll_loss2d_forward", "self"): _class_log_probabilities,
    ("_dirichlet_grad", "x"): _simplex,
    ("multinomial", "self"): uniform(0.1, 1.0),
}
"""(family, argument) → how its values are drawn."""
