"""Which ops belong to which class of comparison, where their schemas and tags do not tell.

Names are families: without namespace, overload, `_foreach_` and the in-place underscore.
"""

from __future__ import annotations

__all__ = [
    "EXACT",
    "LEFT_TO_THE_CALLER",
    "LINALG",
    "LOOSE_STRIDES",
    "OWN_PRECISION",
    "PRIVATE_OUTPUTS",
    "RANDOM",
    "RECURSION",
    "REDUCTION",
    "STEPPED",
    "UNDEFINED",
]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


EXACT = _names(
    """
    _aminmax _chunk_cat _coalesce _conj _convert_indices_from_coo_to_csr
    _convert_indices_from_csr_to_coo _dimI _dimV _index_put_impl _indices
    _local_scalar_dense _neg_view _nnz _pack_padded_sequence _reshape_alias _reshape_copy
    _sparse_coo_tensor_unsafe _sparse_coo_tensor_with_dims
    _sparse_coo_tensor_with_dims_and_tensors _stack _to_dense _to_sparse _unique _unique2
    _unsafe_index _unsafe_index_put _unsafe_masked_index _unsafe_view
    _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d _values
    abs absolute adaptive_max_pool2d adaptive_max_pool3d alias all allclose amax amin
    aminmax any argmax argmin argsort as_strided_scatter bincount bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor block_diag
    broadcast_tensors bucketize cat ceil channel_shuffle clamp clamp_max clamp_min
    clip clone col_indices complex concat conj_physical constant_pad_nd contiguous copysign
    count_nonzero cummax cummin detach diag diag_embed diagonal_scatter embedding eq equal
    expand eye fill fill_diagonal fix flip fliplr flipud floor fmax fmin frac
    fractional_max_pool2d fractional_max_pool3d frexp full full_like gather gcd ge gt
    hardshrink hardtanh hardtanh_backward heaviside im2col imag index index_copy index_fill
    index_put index_select indices isfinite isin isinf isnan isneginf isposinf kthvalue lcm
    le lift lift_fresh logical_and logical_not logical_or logical_xor lt masked_fill
    masked_scatter masked_select masked_select_backward max max_pool2d
    max_pool2d_with_indices max_pool3d_with_indices max_unpool2d max_unpool3d maximum median
    meshgrid min minimum mode movedim msort nan_to_num nanmedian narrow ne neg negative
    new_full new_ones new_zeros nextafter nonzero nonzero_static one_hot ones ones_like
    permute pixel_shuffle pixel_unshuffle positive real reflection_pad1d reflection_pad2d
    reflection_pad3d relu relu6 repeat repeat_interleave replication_pad1d replication_pad2d
    replication_pad3d roll rot90 scalar_tensor scatter searchsorted select select_backward
    select_scatter sgn sign signbit slice slice_backward slice_scatter sort
    sparse_coo_tensor split split_with_sizes squeeze stack t take take_along_dim threshold
    threshold_backward to_dense topk trace_backward transpose tril tril_indices triu
    triu_indices trunc unbind unfold_copy unique_consecutive unique_dim unsafe_split
    unsafe_split_with_sizes upsample_nearest1d upsample_nearest2d upsample_nearest3d values
    view view_as_complex view_as_real where zero zeros zeros_like
    """
)
"""Ops that move, choose, compare or count, or round in only one way: every bit is defined."""

STEPPED = _names(
    """
    _fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_tensor_affine
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _histogramdd_from_bin_cts
    _histogramdd_from_bin_tensors fake_quantize_per_channel_affine_cachemask
    fake_quantize_per_tensor_affine_cachemask floor_divide fmod grid_sampler_2d
    grid_sampler_3d hardsigmoid_backward heaviside histc histogram linspace logspace range
    remainder round special_round
    """
)
"""Pointwise ops with jumps: where the inputs are at one, either side is right."""

REDUCTION = _names(
    """
    _log_softmax _softmax cumprod cumsum dist
    embedding_dense_backward index_add index_reduce linalg_vector_norm log_softmax
    logcumsumexp logsumexp mean mse_loss nanmean nansum nll_loss norm prod scatter_add
    scatter_reduce segment_reduce softmax std std_mean sum trace var var_mean
    """
)
"""Ops that add up many elements."""

RECURSION = _names(
    """
    _ctc_loss _ctc_loss_backward logcumsumexp cumprod _lstm_mps lstm_mps_backward lstm gru
    rnn_tanh rnn_relu _cudnn_rnn _cudnn_rnn_backward
    """
)
"""Ops that feed each result into the next: rounding errors are passed on and grow."""

LINALG = _names(
    """
    _cholesky_solve_helper _linalg_check_errors _linalg_det _linalg_eigh _linalg_eigvals
    _linalg_slogdet _linalg_solve_ex _linalg_svd cholesky cholesky_inverse cholesky_solve
    geqrf inverse linalg_cholesky_ex linalg_eig linalg_eigh linalg_eigvals
    linalg_householder_product linalg_inv_ex linalg_ldl_factor_ex linalg_ldl_solve
    linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve
    linalg_matrix_exp linalg_pinv linalg_qr linalg_solve_triangular linalg_svd
    lu_solve orgqr ormqr triangular_solve
    """
)
"""Factorisations, solvers and what is computed through them."""

UNDEFINED = _names(
    """
    _cudnn_init_dropout_state _debug_has_internal_overlap _empty_affine_quantized
    _empty_per_channel_affine_quantized _fill_mem_eff_dropout_mask _fused_sdp_choice
    _nested_tensor_size _resize_output empty empty_like empty_permuted empty_quantized
    empty_strided is_pinned new_empty new_empty_strided q_scale q_zero_point record_stream
    resize resize_as set
    """
)
"""Ops that promise no values: what memory held before, or a backend's own choice."""

RANDOM = _names(
    """
    _fused_dropout _philox_normal _philox_uniform _sample_dirichlet _standard_gamma
    bernoulli binomial cauchy exponential geometric log_normal multinomial native_dropout
    normal normal_functional poisson rand rand_like randint randint_like randn randn_like
    random randperm rrelu_with_noise rrelu_with_noise_functional uniform
    """
)
"""Ops whose values come from a generator, unless their rate is zero."""

LEFT_TO_THE_CALLER: dict[str, frozenset[str]] = {
    "_fused_rms_norm": frozenset({"1"}),
    "mps_convolution_backward": frozenset({"2"}),
}
"""Family → outputs that MPS gives nobody: there `convolution_backward` sums the bias' gradient, and
the fused norm, which is taken where no gradient is needed, keeps nothing for one."""

PRIVATE_OUTPUTS: dict[str, frozenset[str]] = {
    "_lstm_mps": frozenset({"3", "4", "5"}),
    "_scaled_dot_product_attention_math_for_mps": frozenset({"1"}),
    "_scaled_dot_product_flash_attention": frozenset({"2", "3", "6", "7", "8"}),
    "_scaled_dot_product_efficient_attention": frozenset({"1", "2", "3"}),
    "_scaled_dot_product_cudnn_attention": frozenset({"1", "2", "3", "6", "7", "8"}),
    "native_batch_norm": frozenset({"1", "2"}),
    "_native_batch_norm_legit": frozenset({"1", "2"}),
    "_native_batch_norm_legit_no_training": frozenset({"1", "2"}),
    "_batch_norm_with_update": frozenset({"3"}),
    "_batch_norm_with_update_functional": frozenset({"3"}),
    "cudnn_batch_norm": frozenset({"3"}),
    "log_sigmoid_forward": frozenset({"1"}),
    "_embedding_bag": frozenset({"1", "2", "3"}),
    "_embedding_bag_forward_only": frozenset({"1", "2", "3"}),
    "_ctc_loss": frozenset({"1"}),
    "_linalg_det": frozenset({"1", "2"}),
    "_linalg_slogdet": frozenset({"2", "3"}),
    "_linalg_solve_ex": frozenset({"1", "2"}),
    "linalg_lstsq": frozenset({"1", "2", "3"}),
}
"""Family → outputs that hold a backend's own state for its backward: only that they exist counts.

`native_batch_norm` fills them in training only; see `private_outputs`.
"""

OWN_PRECISION: dict[str, frozenset[str]] = dict.fromkeys(
    (
        "_batch_norm_with_update",
        "_native_batch_norm_legit",
        "native_batch_norm",
        "native_group_norm",
        "native_layer_norm",
    ),
    frozenset({"1", "2"}),
)
"""Family → saved statistics that a backend may keep in a wider dtype than the input's."""

LOOSE_STRIDES = LINALG | _names(
    """
    _conv_depthwise2d _convolution _mps_convolution _mps_convolution_transpose conv1d conv2d
    conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution convolution_backward
    convolution_overrideable cudnn_convolution cudnn_convolution_transpose
    mps_convolution_backward mps_convolution_transpose_backward slow_conv3d slow_conv_dilated2d
    slow_conv_transpose2d thnn_conv2d
    _fft_c2c _fft_c2r _fft_r2c
    _scaled_dot_product_attention_math _scaled_dot_product_attention_math_for_mps
    _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention
    _scaled_dot_product_flash_attention _scaled_dot_product_fused_attention_overrideable
    scaled_dot_product_attention
    _cudnn_rnn _lstm_mps gru lstm lstm_mps_backward rnn_relu rnn_tanh
    """
)
"""Ops whose outputs a backend may lay out as it likes: convolutions take the layout that their
library prefers, linear algebra is column-major where LAPACK computes it."""
