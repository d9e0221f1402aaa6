"""What a backward op got from its forward: computed by running that forward, never drawn.

A mean that is not the mean of the input, or an index that no pooling window holds, would ask an op
for something no step ever does; some kernels read out of bounds then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

__all__ = ["SAVED", "Values"]

_aten = torch.ops.aten


class Values:
    """The drawn arguments of a call: tensors in double precision, attributes as captured."""

    def __init__(self, tensors: Mapping[str, Tensor], attributes: Mapping[str, Any]) -> None:
        self._tensors = tensors
        self._attributes = attributes

    def __getitem__(self, name: str) -> Any:
        """A tensor (floating ones as float64), an attribute, or None when neither was given."""
        tensor = self._tensors.get(name)
        if tensor is None:
            return self._attributes.get(name)
        if tensor.is_complex():
            return tensor.to(torch.complex128)
        return tensor.double() if tensor.is_floating_point() else tensor

    def all(self, *names: str) -> tuple[Any, ...]:
        """Several at once."""
        return tuple(self[name] for name in names)


Saved = Callable[[Values], dict[str, Any]]
SAVED: dict[str, Saved] = {}
"""Family → function that gives the saved arguments by name."""


def _for(*families: str) -> Callable[[Saved], Saved]:
    def register(function: Saved) -> Saved:
        SAVED.update(dict.fromkeys(families, function))
        return function

    return register


@_for("_softmax_backward_data")
def _softmax(v: Values) -> dict[str, Any]:
    return {"output": v["output"].softmax(v["dim"])}


@_for("_log_softmax_backward_data")
def _log_softmax(v: Values) -> dict[str, Any]:
    return {"output": v["output"].log_softmax(v["dim"])}


@_for("_masked_softmax_backward")
def _masked_softmax(v: Values) -> dict[str, Any]:
    dim = v["dim"] if v["dim"] is not None else -1
    return {"output": v["output"].masked_fill(v["mask"].bool(), -1e9).softmax(dim)}


@_for("native_layer_norm_backward")
def _layer_norm(v: Values) -> dict[str, Any]:
    _, mean, rstd = torch.native_layer_norm(v["input"], v["normalized_shape"], None, None, 1e-5)
    return {"mean": mean, "rstd": rstd}


@_for("_fused_rms_norm_backward")
def _rms_norm(v: Values) -> dict[str, Any]:
    axes = list(range(-len(v["normalized_shape"]), 0))
    return {"rstd": (v["input"].square().mean(axes, keepdim=True) + 1e-5).rsqrt()}


@_for("native_group_norm_backward")
def _group_norm(v: Values) -> dict[str, Any]:
    sizes = v.all("N", "C", "HxW", "group")
    _, mean, rstd = _aten.native_group_norm(v["input"].contiguous(), None, None, *sizes, 1e-5)
    return {"mean": mean, "rstd": rstd}


@_for("native_batch_norm_backward", "cudnn_batch_norm_backward", "batch_norm_backward")
def _batch_norm(v: Values) -> dict[str, Any]:
    axes = [dim for dim in range(v["input"].dim()) if dim != 1]
    eps = v["eps"] if v["eps"] is not None else v["epsilon"]
    invstd = (v["input"].var(axes, correction=0) + eps).rsqrt()
    return {"save_mean": v["input"].mean(axes), "save_invstd": invstd, "save_var": invstd}


@_for("max_pool2d_with_indices_backward")
def _max_pool2d(v: Values) -> dict[str, Any]:
    window = v.all("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    return {"indices": _aten.max_pool2d_with_indices(v["self"], *window)[1]}


@_for("max_pool3d_with_indices_backward")
def _max_pool3d(v: Values) -> dict[str, Any]:
    window = v.all("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    return {"indices": _aten.max_pool3d_with_indices(v["self"], *window)[1]}


@_for("adaptive_max_pool2d_backward")
def _adaptive_max_pool2d(v: Values) -> dict[str, Any]:
    return {"indices": _aten.adaptive_max_pool2d(v["self"], v["grad_output"].shape[-2:])[1]}


@_for("adaptive_max_pool3d_backward")
def _adaptive_max_pool3d(v: Values) -> dict[str, Any]:
    return {"indices": _aten.adaptive_max_pool3d(v["self"], v["grad_output"].shape[-3:])[1]}


@_for("fractional_max_pool2d_backward")
def _fractional_max_pool2d(v: Values) -> dict[str, Any]:
    lead = v["self"].shape[:-2]
    samples = torch.full((lead[0] if len(lead) > 1 else 1, lead[-1], 2), 0.5, dtype=torch.float64)
    pool = _aten.fractional_max_pool2d
    return {"indices": pool(v["self"], *v.all("kernel_size", "output_size"), samples)[1]}


@_for("fractional_max_pool3d_backward")
def _fractional_max_pool3d(v: Values) -> dict[str, Any]:
    lead = v["self"].shape[:-3]
    samples = torch.full((lead[0] if len(lead) > 1 else 1, lead[-1], 3), 0.5, dtype=torch.float64)
    pool = _aten.fractional_max_pool3d
    return {"indices": pool(v["self"], *v.all("kernel_size", "output_size"), samples)[1]}


@_for("nll_loss_backward", "nll_loss2d_backward")
def _nll_loss(v: Values) -> dict[str, Any]:
    spatial = v["target"].dim() > 1
    forward = _aten.nll_loss2d_forward if spatial else _aten.nll_loss_forward
    given = v.all("self", "target", "weight", "reduction", "ignore_index")
    return {"total_weight": forward(*given)[1]}


@_for("_ctc_loss_backward")
def _ctc_loss(v: Values) -> dict[str, Any]:
    names = ("log_probs", "targets", "input_lengths", "target_lengths", "blank", "zero_infinity")
    loss, alpha = _aten._ctc_loss(*v.all(*names))
    return {"neg_log_likelihood": loss, "log_alpha": alpha}


@_for("multilabel_margin_loss_backward")
def _multilabel_margin(v: Values) -> dict[str, Any]:
    forward = _aten.multilabel_margin_loss_forward
    return {"is_target": forward(*v.all("self", "target", "reduction"))[1]}


@_for("log_sigmoid_backward")
def _log_sigmoid(v: Values) -> dict[str, Any]:
    return {"buffer": _aten.log_sigmoid_forward(v["self"])[1]}


@_for("_weight_norm_interface_backward")
def _weight_norm(v: Values) -> dict[str, Any]:
    axes = [dim for dim in range(v["saved_v"].dim()) if dim != v["dim"]]
    norms = v["saved_v"].square().sum(axes, keepdim=True).sqrt()
    return {"saved_norms": norms}


@_for("_cdist_backward")
def _cdist(v: Values) -> dict[str, Any]:
    return {"cdist": torch.cdist(v["x1"], v["x2"], v["p"])}


@_for("_pdist_backward")
def _pdist(v: Values) -> dict[str, Any]:
    return {"pdist": torch.pdist(v["self"], v["p"])}


@_for(
    "_embedding_bag_dense_backward",
    "_embedding_bag_backward",
    "_embedding_bag_sparse_backward",
    "_embedding_bag_per_sample_weights_backward",
)
def _embedding_bag(v: Values) -> dict[str, Any]:
    """Indices are drawn; the bags are made of equal length."""
    indices, bags = v["indices"], v["grad"].shape[0]
    starts = (torch.arange(bags) * indices.numel() // max(bags, 1)).to(indices.dtype)
    rows = int(v["num_weights"]) if v["num_weights"] is not None else v["weight"].shape[0]
    weight = torch.ones(rows, v["grad"].shape[1], dtype=torch.float64)
    padding = -1 if v["padding_idx"] is None else v["padding_idx"]
    forward = _aten._embedding_bag(
        weight, indices.reshape(-1), starts, bool(v["scale_grad_by_freq"]), v["mode"], False,
        v["per_sample_weights"], False, padding,
    )  # fmt: skip
    names = ("offset2bag", "bag_size", "maximum_indices")
    return {"offsets": starts, **dict(zip(names, forward[1:], strict=True))}


@_for("_segment_reduce_backward")
def _segment_reduce(v: Values) -> dict[str, Any]:
    given = {name: v[name] for name in ("lengths", "offsets", "initial") if v[name] is not None}
    data = v["data"]
    forward = torch.segment_reduce(data, v["reduce"], axis=v["axis"], unsafe=True, **given)
    return {"output": forward}


@_for("linalg_lu_solve", "lu_unpack", "lu_solve")
def _lu(v: Values) -> dict[str, Any]:
    drawn = next(x for x in v.all("LU", "LU_data") if x is not None)
    factor, pivots = torch.linalg.lu_factor(drawn)
    return {"LU": factor, "LU_data": factor, "pivots": pivots, "LU_pivots": pivots}


@_for("linalg_ldl_solve")
def _ldl(v: Values) -> dict[str, Any]:
    drawn = v["LD"] + v["LD"].mH
    factor, pivots = torch.linalg.ldl_factor(drawn, hermitian=bool(v["hermitian"]))
    return {"LD": factor, "pivots": pivots}


@_for("linalg_householder_product", "orgqr")
def _reflectors(v: Values) -> dict[str, Any]:
    name = "input" if v["input"] is not None else "self"
    factor, tau = torch.geqrf(v[name])
    return {name: factor, "tau": tau[..., : v["tau"].shape[-1]]}


@_for("ormqr")
def _applied_reflectors(v: Values) -> dict[str, Any]:
    name, scale = ("self", "input2") if v["input2"] is not None else ("input", "tau")
    factor, tau = torch.geqrf(v[name])
    return {name: factor, scale: tau[..., : v[scale].shape[-1]]}


@_for("cumprod_backward")
def _cumprod(v: Values) -> dict[str, Any]:
    return {"output": v["input"].cumprod(v["dim"])}


@_for("searchsorted")
def _searchsorted(v: Values) -> dict[str, Any]:
    """With a sorter the sequence need not be sorted, but the sorter must sort it."""
    if v["sorter"] is None:
        return {}
    return {"sorter": v["sorted_sequence"].argsort(-1)}


@_for("_dirichlet_grad")
def _dirichlet(v: Values) -> dict[str, Any]:
    return {"total": v["alpha"].sum(-1, keepdim=True).expand(v["alpha"].shape)}


@_for("_pack_padded_sequence_backward")
def _packed(v: Values) -> dict[str, Any]:
    """Batch sizes that add up to the packed rows, never growing."""
    total, steps = v["grad"].shape[0], v["batch_sizes"].shape[0]
    base, extra = divmod(total, max(steps, 1))
    return {"batch_sizes": torch.tensor([base + (step < extra) for step in range(steps)])}
