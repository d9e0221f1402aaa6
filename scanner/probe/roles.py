"""Which values an operand may take: a table by op family and argument, and by argument alone.

Values outside an op's domain tell nothing about a device: the square root of −1 is NaN everywhere,
and an index out of range is the caller's fault.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scanner.probe.distinct import distinct
from scanner.probe.draws import (
    Draw,
    Operand,
    away_from_zero,
    integers,
    levels,
    masks,
    normal,
    positive,
    uniform,
    whole,
)
from scanner.probe.indices import INDEX_ROLES
from scanner.probe.positions import grid
from scanner.probe.structures import STRUCTURE_ROLES

__all__ = ["DOMAIN_ROLES", "role_of"]

_probability = uniform(0.02, 0.98)
_inside = uniform(-0.95, 0.95)
_few = whole(0, 7)


def _normal_times(scale: float) -> Draw:
    """Wider normal values, for ops whose result is a whole number."""
    return lambda operand: (
        operand.cast(normal(operand) * scale)
        if operand.dtype.is_floating_point
        else normal(operand)
    )


def _constant(value: float) -> Draw:
    return lambda operand: torch.full(operand.shape, value, dtype=operand.dtype)


def _base_of_power(operand: Operand) -> Tensor:
    """Positive unless the exponent is whole; away from zero, since it may be negative."""
    if not (operand.dtype.is_floating_point or operand.dtype.is_complex):
        return integers(operand, -3, 4)
    exponent = operand.call.attributes.get("exponent")
    whole_number = isinstance(exponent, int | float) and float(exponent).is_integer()
    return away_from_zero(operand) if whole_number else positive(operand)


def _exponent(operand: Operand) -> Tensor:
    if operand.dtype.is_floating_point or operand.dtype.is_complex:
        return uniform(-2.0, 2.0)(operand)
    return integers(operand, 0, 4)


def _multivariate(operand: Operand) -> Tensor:
    """`mvlgamma(x, p)` needs x > (p − 1) / 2."""
    low = (int(operand.attribute("p", 1)) - 1) / 2 + 0.2
    return uniform(low, low + 3)(operand)


def _converted(operand: Operand) -> Tensor:
    """Values that every dtype can hold: what a negative number becomes when unsigned is open."""
    target = str(operand.attribute("dtype", ""))
    if target.startswith("uint") or operand.dtype == torch.bool:
        return uniform(0.0, 4.0)(operand)
    return normal(operand)


def _signs(operand: Operand) -> Tensor:
    """+1 or −1."""
    return operand.cast(masks(operand).to(torch.float32) * 2 - 1)


def _recurrent_weight(operand: Operand) -> Tensor:
    """Within ±1/√hidden, as torch.nn initialises recurrent layers.

    Larger weights make the recurrence chaotic: float32 and float64 then part after some steps.
    """
    state = operand.spec("hx") or operand.spec("hx[0]")
    bound = float(state.shape[-1] if state else operand.shape[-1]) ** -0.5
    return uniform(-bound, bound)(operand)


def _words(text: str) -> list[str]:
    return text.split()


def _rows(names: str, argument: str, draw: Draw) -> dict[tuple[str, str], Draw]:
    return {(name, argument): draw for name in names.split()}


_SELECTING = (
    "max min amax amin aminmax _aminmax median nanmedian sort argsort msort topk kthvalue cummax "
    "cummin argmax argmin max_pool2d max_pool2d_with_indices max_pool3d_with_indices "
    "adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d "
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward max_pool2d_backward "
    "adaptive_max_pool2d_backward adaptive_max_pool3d_backward fractional_max_pool2d_backward "
    "fractional_max_pool3d_backward quantized_max_pool2d"
)
_BESSEL = (
    "special_bessel_y0 special_bessel_y1 special_modified_bessel_k0 special_modified_bessel_k1"
)
_SCALED_BESSEL = "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1"
_ORTHOGONAL = """
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
    legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
    shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
"""
_RECURRENT = "lstm gru rnn_tanh rnn_relu _lstm_mps lstm_mps_backward"
_FOR_CUDNN = "_cudnn_rnn _cudnn_rnn_backward"
_CELLS = "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"
_POLYNOMIALS = " ".join(f"special_{name}" for name in _words(_ORTHOGONAL))

DOMAIN_ROLES: dict[tuple[str, str], Draw] = {
    **_rows(_SELECTING, "self", distinct),
    **_rows("max min", "other", distinct),
    **_rows("log log2 log10 sqrt rsqrt lgamma digamma special_entr", "self", positive),
    **_rows(_BESSEL, "self", positive),
    **_rows(_SCALED_BESSEL, "x", positive),
    **_rows(_POLYNOMIALS, "x", uniform(0.0, 1.0)),
    **_rows(_POLYNOMIALS, "n", _few),
    **_rows("acos asin atanh erfinv arccos arcsin arctanh", "self", _inside),
    **_rows("logit logit_backward special_ndtri special_logit", "self", _probability),
    **_rows("log1p", "self", uniform(-0.9, 4.0)),
    **_rows("acosh arccosh", "self", uniform(1.05, 4.0)),
    **_rows("tan", "self", uniform(-1.3, 1.3)),
    **_rows("igamma igammac polygamma _standard_gamma _standard_gamma_grad", "self", positive),
    **_rows("igamma igammac special_zeta xlogy", "other", positive),
    **_rows("special_zeta", "self", uniform(1.2, 5.0)),
    **_rows("special_xlog1py", "other", uniform(-0.9, 4.0)),
    **_rows("mvlgamma", "self", _multivariate),
    **_rows("pow float_power", "self", _base_of_power),
    **_rows("pow float_power", "exponent", _exponent),
    **_rows("div divide true_divide floor_divide remainder fmod atan2", "other", away_from_zero),
    **_rows("reciprocal linalg_vector_norm norm renorm", "self", away_from_zero),
    **_rows("addcdiv", "tensor2", away_from_zero),
    **_rows("floor ceil trunc round frac", "self", _normal_times(3.0)),
    **_rows("remainder fmod floor_divide", "self", _normal_times(3.0)),
    **_rows("bitwise_left_shift bitwise_right_shift __lshift__ __rshift__", "other", _few),
    **_rows("ldexp", "other", whole(-3, 4)),
    **_rows("clamp clip", "min", uniform(-1.0, -0.2)),
    **_rows("clamp clip", "max", uniform(0.2, 1.0)),
    **_rows("lerp", "weight", uniform(0.0, 1.0)),
    **_rows("_to_copy to copy", "self", _converted),
    **_rows("_unique _unique2 unique_dim unique_consecutive", "self", levels),
    **_rows("nonzero nonzero_static count_nonzero argwhere any all", "self", levels),
    **_rows("masked_fill masked_select", "mask", masks),
    **_rows("bernoulli", "self", _probability),
    **_rows("bernoulli", "p", _probability),
    **_rows("poisson", "self", uniform(0.5, 6.0)),
    **_rows("binomial", "count", whole(0, 12)),
    **_rows("binomial", "prob", _probability),
    **_rows("_sample_dirichlet", "self", positive),
    **_rows("_dirichlet_grad", "alpha", positive),
    **_rows("binary_cross_entropy binary_cross_entropy_backward", "self", _probability),
    **_rows("binary_cross_entropy binary_cross_entropy_backward", "target", _probability),
    **_rows("soft_margin_loss soft_margin_loss_backward", "target", _signs),
    **_rows("sigmoid_backward", "output", _probability),
    **_rows("tanh_backward", "output", _inside),
    **_rows("native_dropout_backward _masked_scale", "mask", masks),
    **_rows("fractional_max_pool2d fractional_max_pool3d", "random_samples", uniform(0.0, 1.0)),
    **_rows("polar", "abs", positive),
    **_rows(_RECURRENT, "params", _recurrent_weight),
    **_rows(_FOR_CUDNN, "weight", _recurrent_weight),
    **_rows(_CELLS, "w_ih", _recurrent_weight),
    **_rows(_CELLS, "w_hh", _recurrent_weight),
    **_rows("repeat_interleave", "self", normal),
    **_rows("_fused_adam _fused_adamw _fused_adagrad _fused_sgd", "grad_scale", _constant(4.0)),
    **_rows("_amp_update_scale", "self", _constant(1024.0)),
    **_rows("_amp_update_scale", "growth_tracker", _few),
    **_rows("_amp_foreach_non_finite_check_and_unscale", "inv_scale", _constant(0.25)),
}

_NAMED_ROLES: dict[str, Draw] = {
    "running_var": positive,
    "var": positive,
    "std": positive,
    "rstd": positive,
    "invstd": positive,
    "save_invstd": positive,
    "save_var": positive,
    "exp_avg_sqs": positive,
    "max_exp_avg_sqs": positive,
    "state_sums": positive,
    "state_steps": whole(1, 50),
    "found_inf": _constant(0.0),
    "grid": grid,
    "noise": uniform(0.1, 0.9),
    "scale": uniform(0.05, 0.5),
    "zero_point": _few,
    "condition": masks,
    # Positions in ops that no table names: zero is always in range.
    **dict.fromkeys(("index", "indices", "offsets", "offset2bag", "bag_size"), _constant(0)),
    **dict.fromkeys(("maximum_indices", "info", "arg_out", "pivots", "LU_pivots"), _constant(0)),
    **dict.fromkeys(("cum_seq_q", "cum_seq_k", "philox_seed", "philox_offset"), _constant(0)),
}
"""Arguments that mean the same in every op that has them."""


def role_of(family: str, argument: str) -> Draw:
    """How the values of an operand are drawn; standard normal where the tables say nothing."""
    key = (family, argument)
    for table in (INDEX_ROLES, STRUCTURE_ROLES, DOMAIN_ROLES):
        if key in table:
            return table[key]
    return _NAMED_ROLES.get(argument, normal)
