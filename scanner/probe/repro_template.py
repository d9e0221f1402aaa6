"""The script of a repro; `repro` fills in its braces. It uses nothing but torch."""

from __future__ import annotations

__all__ = ["TEMPLATE"]

TEMPLATE = '''"""{op}: {status}

{reason}

Usage: python THIS_FILE [DEVICE]     exits with 1 when the device is at fault
"""

import base64
import sys
import warnings
import zlib

import torch

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "{device}"
OP = {callable}
# Positions of arguments whose gradients are compared; None compares what the op returns.
GRADIENT = {gradient}
# Outputs that hold a backend's own state.
PRIVATE = {private}
WIDE = {{
    **dict.fromkeys((torch.float16, torch.bfloat16, torch.float32), torch.float64),
    torch.complex64: torch.complex128,
}}


def stored(dtype, data):
    raw = bytearray(zlib.decompress(base64.b85decode(data)))
    if not raw:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer(raw, dtype=torch.uint8).view(dtype)


def drawn(dtype, count, low, high):
    """The failing values are too many for a script: others from the same range."""
    generator = torch.Generator().manual_seed(0)
    if not (dtype.is_floating_point or dtype.is_complex):
        return torch.randint(low, high, (count,), generator=generator).to(dtype)
    values = torch.rand(count, generator=generator, dtype=torch.float64)
    return (values * (high - low) + low).to(dtype)


def sparse(dense, layout):
    return dense.to_sparse(layout=layout)


# The memory that the arguments lie in.
STORAGES = [
{storages}
]
# Where each argument lies: storage, shape, strides, offset, dtype, whether it stays on the host.
TENSORS = [
{tensors}
]
CHANGED = {changed}
EXPECTED = [
{expected}
]


def call(t, device, w):
    return OP({arguments})


def tensors(device, raised):
    """Arguments over copies of the storages, in the same layout."""
    moved = {{}}

    def laid(place, shape, stride, offset, dtype, host):
        where = "cpu" if host else device
        if (place, where) not in moved:
            storage = STORAGES[place]
            wide = WIDE.get(storage.dtype, storage.dtype) if raised else storage.dtype
            moved[place, where] = storage.to(wide).to(where, copy=True)
        flat = moved[place, where]
        if not raised and flat.dtype != dtype:
            flat = flat.view(dtype)
        return flat.as_strided(shape, stride, offset)

    return [laid(*item) if isinstance(item, tuple) else item.to(device) for item in TENSORS]


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return [] if value is None else [torch.tensor(value)]


def run(device, raised=False):
    """Outputs, or gradients of them, on the CPU."""
    torch.set_default_dtype(torch.float64 if raised else torch.float32)
    t = tensors(device, raised)
    if GRADIENT is not None:
        return gradients(t, device, raised)
    with torch.no_grad():
        returned = flat(call(t, device, raise_dtype if raised else keep_dtype))
    changed = [t[place] for place in CHANGED if not any(t[place] is out for out in returned)]
    return [onto_host(out) for out in returned + changed]


def gradients(t, device, raised):
    leaves = [x.detach().requires_grad_(place in GRADIENT) for place, x in enumerate(t)]
    given = [x.clone() if place in CHANGED else x for place, x in enumerate(leaves)]
    outputs = flat(call(given, device, raise_dtype if raised else keep_dtype))
    outputs = [out for out in outputs if out.requires_grad]
    generator = torch.Generator().manual_seed(0)
    single = dict(generator=generator, dtype=torch.float32)
    vectors = [torch.randn(out.shape, **single).to(out) for out in outputs]
    wanted = [x for x in leaves if x.requires_grad]
    found = torch.autograd.grad(outputs, wanted, vectors, allow_unused=True)
    return [onto_host(gradient) for gradient in found if gradient is not None]


def raise_dtype(dtype):
    return WIDE.get(dtype, dtype)


def keep_dtype(dtype):
    return dtype


def onto_host(tensor):
    tensor = tensor.detach().to("cpu").resolve_conj()
    if tensor.dtype == torch.complex32:
        tensor = tensor.to(torch.complex64)
    return tensor.to_dense() if tensor.layout != torch.strided else tensor


def slope(values, right):
    """0.01 when the values are 1 % too large on the whole."""
    total = float(right.abs().nan_to_num(0, 0, 0).sum()) or 1.0
    return float(((values - right).nan_to_num() * right.sgn().conj()).real.sum()) / total


def compare(number, ours, theirs, right):
    """Prints one output; True when it is right."""
    print(f"output {{number}}: {{tuple(ours.shape)}} {{ours.dtype}}, strides {{ours.stride()}}")
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        print(f"  the CPU gives {{tuple(theirs.shape)}} {{theirs.dtype}}")
        return False
    if ours.stride() != theirs.stride():
        print(f"  the CPU gives strides {{theirs.stride()}}")
    if torch.equal(ours, theirs):
        print("  equal to the CPU's")
        return True
    if not (theirs.dtype.is_floating_point or theirs.dtype.is_complex):
        wrong = ours != theirs
        print(f"  {{int(wrong.sum())}} of {{ours.numel()}} elements differ")
        return not bool(wrong.any())
    lost = ours.isfinite() != theirs.isfinite()
    if bool(lost.any()):
        print(f"  {{int(lost.sum())}} elements are finite on one side and not on the other")
        return False
    wide = torch.complex128 if theirs.dtype.is_complex else torch.float64
    right = theirs.to(wide) if right is None or right.shape != theirs.shape else right.to(wide)
    error = (ours.to(wide) - right).abs().nan_to_num()
    own = (theirs.to(wide) - right).abs().nan_to_num()
    epsilon = torch.finfo(theirs.dtype).eps
    units = 100 if epsilon < 1e-4 else 8
    scale = float(right.abs().nan_to_num(0, 0, 0).max())
    allowed = 3 * float(own.max()) + units * epsilon * scale
    gain, usual = slope(ours.to(wide), right), slope(theirs.to(wide), right)
    place = int(error.reshape(-1).argmax())
    values = [float(x.reshape(-1)[place].abs()) for x in (ours, theirs, right)]
    print(f"  largest error {{float(error.max()):.6g}} (the CPU's: {{float(own.max()):.6g}}, "
          f"allowed: {{allowed:.6g}}, gain {{gain:+.3%}})")
    words = "device {{}}, CPU {{}}, float64 {{}}".format(*values)
    print(f"  at flat index {{place}}: {{words}}")
    biased = abs(gain) > max(0.005, 3 * abs(usual)) and ours.numel() >= 12
    return float(error.max()) <= allowed and not biased


def main():
    warnings.simplefilter("ignore")
    print(f"torch {{torch.__version__}}, {{DEVICE}}")
    theirs = EXPECTED or run("cpu")
    try:
        right = [None] * len(theirs) if EXPECTED else run("cpu", raised=True)
    except RuntimeError:
        right = [None] * len(theirs)
    torch.set_default_dtype(torch.float32)
    try:
        ours = run(DEVICE)
    except Exception as error:
        print(f"the device raises {{type(error).__name__}}: {{error}}")
        return 1
    each = enumerate(zip(ours, theirs, right))
    good = [compare(number, *three) for number, three in each if number not in PRIVATE]
    print("the device is right" if all(good) else "THE DEVICE IS WRONG")
    return 0 if all(good) else 1


sys.exit(main())
'''
