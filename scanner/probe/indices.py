"""Values for operands that point into other operands: always in range, unique where a repeated
position would make the result depend on the order of writes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scanner.probe.draws import Draw, Operand, integers, masks

__all__ = ["INDEX_ROLES"]

_FOLLOWING_MASK = (torch.bool, torch.uint8)


def _size(operand: Operand, name: str, dim: int) -> int:
    spec = operand.spec(name)
    if spec is None or not spec.shape:
        return 1
    return spec.shape[dim]


def _below(operand: Operand, bound: int) -> Tensor:
    return integers(operand, 0, max(bound, 1))


def _along_dim(operand: Operand) -> Tensor:
    """Any position of `self` along `dim`."""
    dim = operand.attribute("dim", 0)
    return _below(operand, _size(operand, "self", dim))


def _unique_along_dim(operand: Operand) -> Tensor:
    """Each line of the index along `dim` holds distinct positions of `self`, if they suffice."""
    dim = int(operand.attribute("dim", 0))
    bound = _size(operand, "self", dim)
    if not operand.shape or operand.shape[dim] > bound:
        return _below(operand, bound)
    wide = list(operand.shape)
    wide[dim] = bound
    keys = torch.rand(wide, generator=operand.generator)
    return operand.cast(keys.argsort(dim).narrow(dim, 0, operand.shape[dim]))


def _unique(operand: Operand, bound: int) -> Tensor:
    """Distinct positions below the bound, as far as there are enough."""
    count = int(torch.Size(operand.shape).numel())
    if count > bound:
        return _below(operand, bound)
    order = torch.randperm(bound, generator=operand.generator)[:count]
    return operand.cast(order.reshape(operand.shape))


def _flat(operand: Operand) -> Tensor:
    """Positions in `self` seen as one line (`take`, `put`)."""
    spec = operand.spec("self")
    bound = int(torch.Size(spec.shape).numel()) if spec else 1
    return _unique(operand, bound) if operand.schema.family == "put" else _below(operand, bound)


def _row_of(name: str, dim: int = 0) -> Draw:
    """A position of another operand along a dimension."""
    return lambda operand: _below(operand, _size(operand, name, dim))


def _below_attribute(name: str, default: int) -> Draw:
    """A position below a number that the call gives."""

    def draw(operand: Operand) -> Tensor:
        bound = int(operand.attribute(name, default))
        return _below(operand, bound if bound > 0 else default)

    return draw


def _class_of(operand: Operand) -> Tensor:
    """A class: dimension 1 of the scores, or their only one."""
    scores = operand.spec("self")
    if scores is None or not scores.shape:
        return _below(operand, 1)
    return _below(operand, scores.shape[1 if len(scores.shape) > 1 else 0])


def _advanced(operand: Operand) -> Tensor:
    """One of the index tensors of `x[i, j]`, or a mask over several dimensions."""
    if operand.dtype in _FOLLOWING_MASK:
        return _mask_for_values(operand)
    bounds = _advanced_bounds(operand)
    bound = bounds[operand.index]
    writes = "values" in {argument.name for argument in operand.schema.arguments}
    if not writes or operand.attribute("accumulate", False):
        return _below(operand, bound)
    shapes = {spec.shape for spec in operand.call.inputs if spec.name.startswith("indices[")}
    if len(bounds) == 1 or len(shapes) > 1:
        return _unique(operand, bound)
    return _jointly_unique(operand, bounds)


def _advanced_bounds(operand: Operand) -> dict[int, int]:
    """Position in the index list → size of the dimension of `self` that it selects from."""
    source = operand.spec("self")
    sizes = source.shape if source else ()
    given = {
        int(spec.name[len("indices[") : -1]): spec
        for spec in operand.call.inputs
        if spec.name.startswith("indices[")
    }
    bounds, dim = {}, 0
    for place in range(max(given, default=-1) + 1):
        spec = given.get(place)
        if spec is not None and spec.dtype in {"bool", "uint8"}:
            dim += len(spec.shape)
            continue
        if spec is not None:
            bounds[place] = sizes[dim] if dim < len(sizes) else 1
        dim += 1
    return bounds


def _jointly_unique(operand: Operand, bounds: dict[int, int]) -> Tensor:
    """The tuples of all index tensors together are distinct: each is cut from one permutation."""
    count = int(torch.Size(operand.shape).numel())
    total = 1
    for bound in bounds.values():
        total *= bound
    if count > total or total > 1 << 26:
        return _unique(operand, bounds[operand.index])
    # The same permutation for every index tensor of the call.
    shared = torch.Generator().manual_seed(total * 1009 + count)
    flat = torch.randperm(total, generator=shared)[:count]
    for place in sorted(bounds, reverse=True):
        if place == operand.index:
            break
        flat = flat // bounds[place]
    return operand.cast((flat % bounds[operand.index]).reshape(operand.shape))


def _mask_for_values(operand: Operand) -> Tensor:
    """A mask; it selects as many elements as there are values to write."""
    values = operand.spec("values") or operand.spec("source")
    if values is None or not values.shape or values.shape[0] <= 1:
        return masks(operand)
    return _mask_with(operand, values.shape[0])


def _mask_with(operand: Operand, chosen: int) -> Tensor:
    count = int(torch.Size(operand.shape).numel())
    mask = torch.zeros(count, dtype=torch.bool)
    mask[torch.randperm(count, generator=operand.generator)[:chosen]] = True
    return operand.cast(mask.reshape(operand.shape))


def _mask_within_source(operand: Operand) -> Tensor:
    """`masked_scatter` needs at least as many source elements as the mask has ones."""
    source, target = operand.spec("source"), operand.spec("self")
    available = int(torch.Size(source.shape).numel()) if source else 0
    count = int(torch.Size(operand.shape).numel())
    whole = int(torch.Size(target.shape).numel()) if target else count
    repeats = max(1, whole // max(count, 1))
    return _mask_with(operand, min(available // repeats, count // 2 + 1))


def _unpooled(operand: Operand) -> Tensor:
    """Distinct places in each output plane (`max_unpool2d`)."""
    size = operand.attribute("output_size", [1])
    plane = 1
    for extent in size:
        plane *= int(extent)
    window = int(torch.Size(operand.shape[-len(size) :]).numel())
    rows = int(torch.Size(operand.shape[: -len(size)]).numel())
    keys = torch.rand((rows, max(plane, window)), generator=operand.generator)
    return operand.cast(keys.argsort(-1)[:, :window].reshape(operand.shape) % max(plane, 1))


def _bag_starts(operand: Operand) -> Tensor:
    """Ascending, the first zero, none past the end of the indices."""
    total = _size(operand, "indices", 0)
    starts = _below(operand, total + 1).sort().values
    if starts.numel():
        starts[0] = 0
    if operand.attribute("include_last_offset", False) and starts.numel():
        starts[-1] = total
    return operand.cast(starts)


def _several_classes(operand: Operand) -> Tensor:
    """Distinct classes in each row, ended by −1 (`multilabel_margin_loss`)."""
    classes = operand.shape[-1] if operand.shape else 1
    keys = torch.rand(operand.shape or (1,), generator=operand.generator)
    target = keys.argsort(-1)
    target[..., (classes + 1) // 2 :] = -1
    return operand.cast(target.reshape(operand.shape))


def _labels(operand: Operand) -> Tensor:
    """CTC labels: any class but the blank."""
    scores = operand.spec("log_probs")
    classes = scores.shape[-1] if scores else 2
    values = integers(operand, 0, max(classes - 1, 1))
    blank = int(operand.attribute("blank", 0))
    return operand.cast(torch.where(values >= blank, values + 1, values))


def _sparse_places(operand: Operand) -> Tensor:
    """Distinct coordinates inside the sparse tensor's size, in order."""
    size = operand.attribute("size", [])
    rows, count = operand.shape
    sizes = [int(extent) for extent in size[:rows]] or [count] * rows
    total = int(torch.Size(sizes).numel())
    order = torch.randperm(max(total, count), generator=operand.generator)[:count]
    flat = (order % max(total, 1)).sort().values
    return operand.cast(torch.stack(torch.unravel_index(flat, sizes)))


INDEX_ROLES: dict[tuple[str, str], Draw] = {
    ("gather", "index"): _along_dim,
    ("take_along_dim", "indices"): _along_dim,
    ("scatter", "index"): _unique_along_dim,
    ("scatter_add", "index"): _along_dim,
    ("scatter_reduce", "index"): _along_dim,
    ("index_select", "index"): _along_dim,
    ("index_add", "index"): _along_dim,
    ("index_copy", "index"): lambda operand: _unique(
        operand, _size(operand, "self", operand.attribute("dim", 0))
    ),
    ("index_fill", "index"): _along_dim,
    ("index_reduce", "index"): _along_dim,
    ("take", "index"): _flat,
    ("put", "index"): _flat,
    ("index", "indices"): _advanced,
    ("_unsafe_index", "indices"): _advanced,
    ("_unsafe_masked_index", "indices"): _advanced,
    ("_unsafe_masked_index_put_accumulate", "indices"): _advanced,
    ("index_put", "indices"): _advanced,
    ("_index_put_impl", "indices"): _advanced,
    ("_unsafe_index_put", "indices"): _advanced,
    ("masked_scatter", "mask"): _mask_within_source,
    ("embedding", "indices"): _row_of("weight"),
    ("embedding_renorm", "indices"): _row_of("self"),
    ("embedding_dense_backward", "indices"): _below_attribute("num_weights", 1),
    ("embedding_bag", "indices"): _row_of("weight"),
    ("embedding_bag", "offsets"): _bag_starts,
    ("_embedding_bag", "indices"): _row_of("weight"),
    ("_embedding_bag", "offsets"): _bag_starts,
    ("_embedding_bag_backward", "indices"): _below_attribute("num_weights", 1),
    ("_embedding_bag_dense_backward", "indices"): _below_attribute("num_weights", 1),
    ("_embedding_bag_sparse_backward", "indices"): _below_attribute("num_weights", 1),
    ("_embedding_bag_per_sample_weights_backward", "indices"): _row_of("weight"),
    ("_embedding_bag_forward_only", "indices"): _row_of("weight"),
    ("_embedding_bag_forward_only", "offsets"): _bag_starts,
    ("nll_loss_forward", "target"): _class_of,
    ("nll_loss_backward", "target"): _class_of,
    ("nll_loss2d_forward", "target"): _class_of,
    ("nll_loss2d_backward", "target"): _class_of,
    ("_linear_cross_entropy_batch_chunked", "target"): _row_of("linear_weight"),
    ("_linear_cross_entropy_batch_chunked_no_reduction", "target"): _row_of("linear_weight"),
    ("multi_margin_loss", "target"): _class_of,
    ("multi_margin_loss_backward", "target"): _class_of,
    ("multilabel_margin_loss_forward", "target"): _several_classes,
    ("multilabel_margin_loss_backward", "target"): _several_classes,
    ("one_hot", "self"): _below_attribute("num_classes", 10),
    ("bincount", "self"): lambda operand: integers(operand, 0, 12),
    ("max_unpool2d", "indices"): _unpooled,
    ("max_unpool3d", "indices"): _unpooled,
    ("_ctc_loss", "targets"): _labels,
    ("_ctc_loss_backward", "targets"): _labels,
    ("sparse_coo_tensor", "indices"): _sparse_places,
    ("_sparse_coo_tensor_unsafe", "indices"): _sparse_places,
    ("_sparse_coo_tensor_with_dims_and_tensors", "indices"): _sparse_places,
}
"""(family, argument) → how its values are drawn."""
