"""Configurations of PyTorch's own samples, with the values of the samples."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from scanner.capture import describe
from scanner.records import OpCall

OPS = """
add addcdiv addmm amax argmax argsort as_strided atan2 bmm cat clamp cdist cumprod cumsum div
dot einsum erfinv exp fft.irfft fft.rfft flip floor_divide gather hypot index_add index_copy
index_put index_select kthvalue lerp lgamma linalg.cholesky linalg.eigh linalg.inv linalg.qr
linalg.slogdet linalg.solve linalg.svd log_softmax logcumsumexp logit logsumexp masked_fill
masked_scatter matmul max mean median min mode mul nanmedian native_layer_norm
nn.functional.adaptive_avg_pool2d nn.functional.adaptive_max_pool2d nn.functional.avg_pool2d
nn.functional.batch_norm nn.functional.binary_cross_entropy nn.functional.conv2d
nn.functional.conv_transpose2d nn.functional.ctc_loss nn.functional.embedding
nn.functional.embedding_bag nn.functional.gelu nn.functional.grid_sample
nn.functional.group_norm nn.functional.huber_loss nn.functional.interpolate
nn.functional.linear nn.functional.max_pool2d nn.functional.mse_loss nn.functional.nll_loss
nn.functional.pad nn.functional.prelu nn.functional.scaled_dot_product_attention
nn.functional.silu nn.functional.softplus norm normal nonzero outer pow prod put quantile
remainder repeat_interleave round rsqrt scatter scatter_add scatter_reduce searchsorted
softmax sort special.bessel_j0 special.zeta std sub sum take tan topk trace triangular_solve
tril unfold unique var_mean where xlogy zeros_like
""".split()  # noqa: SIM905  (a list of names reads better as words)


class _Seen(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[OpCall, list[Tensor]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "aten":
            self.rows.append(_row(func, args, kwargs))
        return func(*args, **kwargs)


def _row(func: Any, args: Any, kwargs: Any) -> tuple[OpCall, list[Tensor]]:
    arguments = describe.schema_arguments(func, args, kwargs)
    named = [pair for name, value in arguments.items() for pair in describe.tensors_in(name, value)]
    first: dict[int, int] = {}
    specs = []
    for position, (name, tensor) in enumerate(named):
        alias = first.setdefault(tensor.untyped_storage()._cdata, position)
        known = alias if alias < position else None
        specs.append(describe.tensor_spec(name, tensor, host=False, alias=known))
    attributes = {
        name: describe.attribute(value)
        for name, value in arguments.items()
        if not any(True for _ in describe.tensors_in(name, value))
    }
    op = describe.op_name(func)
    call = OpCall(op=op, phase="forward", inputs=tuple(specs), attributes=attributes)
    return call, [tensor.detach().clone() for _, tensor in named]


@cache
def samples(dtype: torch.dtype, each: int = 1) -> tuple[tuple[OpCall, tuple[Tensor, ...]], ...]:
    """At most `each` configurations of every overload that the samples' forward passes run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

        torch.manual_seed(0)
        rows: dict[str, list[tuple[OpCall, tuple[Tensor, ...]]]] = {}
        for info in op_db:
            if info.name in OPS and not info.variant_test_name and dtype in info.dtypes:
                for call, values in _forward(info, dtype):
                    known = rows.setdefault(call.op, [])
                    small = sum(value.numel() for value in values) < 5000
                    if small and len(known) < each and call not in [row[0] for row in known]:
                        known.append((call, tuple(values)))
    return tuple(row for op in sorted(rows) for row in rows[op])


def _forward(info: Any, dtype: torch.dtype) -> list[tuple[OpCall, list[Tensor]]]:
    with _Seen() as seen, torch.no_grad():
        for number, sample in enumerate(info.sample_inputs("cpu", dtype, requires_grad=False)):
            if number == 3:
                break
            try:
                info.op(sample.input, *sample.args, **sample.kwargs)
            except (RuntimeError, NotImplementedError):
                continue
    return seen.rows
