"""Fourier transforms. From MPSGraphFourierTransformOps.h."""

from __future__ import annotations

import torch
from torch import Tensor

from scanner.sim.graph.methods import Arguments, Methods, Properties, Unsupported

METHODS = Methods()

_FORWARD = ("backward", "forward", "ortho")
_INVERSE = ("forward", "backward", "ortho")
"""Torch's names by MPSGraphFFTScalingMode (none, size, unitary): which of the two transforms torch
scales by the size."""
_DIMENSIONS = 4
"""Only axes among the last four may be transformed."""


def _scaling(properties: Properties, inverse: bool) -> str:
    mode = int(properties.get("scalingMode", 0))
    if not 0 <= mode < len(_FORWARD):
        raise Unsupported(f"FFT scaling mode {mode}")
    return (_INVERSE if inverse else _FORWARD)[mode]


def _operands(call: Arguments) -> tuple[Tensor, list[int], Properties, bool]:
    tensor, properties = call.tensor(call.selector.split(":")[0]), call.descriptor()
    axes = [axis % tensor.dim() for axis in call.integers("axes")]
    if min(axes) < tensor.dim() - _DIMENSIONS:
        raise Unsupported(f"an FFT along axis {min(axes)} of {tensor.dim()}")
    return tensor, axes, properties, bool(properties.get("inverse", False))


@METHODS.define("fastFourierTransformWithTensor:axes:descriptor:name:")
def transform(call: Arguments) -> Tensor:
    """Complex to complex; `inverse` only means the positive sign."""
    tensor, axes, properties, inverse = _operands(call)
    function = torch.fft.ifftn if inverse else torch.fft.fftn
    found: Tensor = function(tensor, dim=axes, norm=_scaling(properties, inverse))
    return found


@METHODS.define("realToHermiteanFFTWithTensor:axes:descriptor:name:")
def real_to_hermitean(call: Arguments) -> Tensor:
    """n / 2 + 1 frequencies along the last of the axes."""
    tensor, axes, properties, inverse = _operands(call)
    found: Tensor = torch.fft.rfftn(tensor, dim=axes, norm=_scaling(properties, False))
    return found.conj().resolve_conj() if inverse else found


@METHODS.define("HermiteanToRealFFTWithTensor:axes:descriptor:name:")
def hermitean_to_real(call: Arguments) -> Tensor:
    """2 (n − 1) elements along the last of the axes, one more with `roundToOddHermitean`."""
    tensor, axes, properties, inverse = _operands(call)
    odd = bool(properties.get("roundToOddHermitean", False))
    sizes = [tensor.shape[axis] for axis in axes]
    sizes[-1] = 2 * (sizes[-1] - 1) + odd
    given = tensor if inverse else tensor.conj().resolve_conj()
    scaling = _scaling(properties, True)
    found: Tensor = torch.fft.irfftn(given, s=sizes, dim=axes, norm=scaling)
    return found
