"""The script of a repro; `repro` fills in its braces.

It uses nothing but torch, except on devices that only opscan has, and where no op of torch computes
the reference: then `{adapter}` imports opscan.
"""

from __future__ import annotations

__all__ = ["TEMPLATE"]

TEMPLATE = '''"""{op}: {status}

{reason}

Usage: python THIS_FILE [DEVICE]

Exits with 1 when the device is at fault, with 0 when it is not, and with 2 when that cannot be told
because the CPU fails too. An op that ends or hangs its process does so here as well.
"""

import base64
import sys
import time
import warnings
import zlib

import torch

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "{device}"
OP = {callable}
# What is compared, in turn: None is what the op returns, else gradients with respect to the
# arguments at these positions.
CHECKS = {checks}
# Outputs that hold a backend's own state.
PRIVATE = {private}
# Whether other strides than the CPU's are what is wrong.
LAYOUT = {layout}
VERDICTS = (
    "the device is right", "THE DEVICE IS WRONG", "nothing can be told", "THE DEVICE RAISES"
)
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
# Arguments whose values are compared after the call.
CHANGED = {changed}
EXPECTED = [
{expected}
]


# Devices that torch does not know, and references that it does not have.
OURS = REFERENCE = None
{adapter}

def call(t, device, w):
    op = OP if device != "cpu" else REFERENCE or OP
    if OURS and device != "cpu":
        op, device = on_ours, OURS.upload(torch.zeros(())).device
    return op({arguments})


def on_ours(*args, **kwargs):
    return OURS.call("{op}", args, kwargs)


def tensors(device, raised):
    """Arguments over copies of the storages, in the same layout."""
    moved = {{}}

    def laid(place, shape, stride, offset, dtype, host):
        where = "cpu" if host or OURS else device
        if (place, where) not in moved:
            storage = STORAGES[place]
            wide = WIDE.get(storage.dtype, storage.dtype) if raised else storage.dtype
            moved[place, where] = storage.to(wide).to(where, copy=True)
        flat = moved[place, where]
        if not raised and flat.dtype != dtype:
            flat = flat.view(dtype)
        return flat.as_strided(shape, stride, offset)

    given = [laid(*item) if isinstance(item, tuple) else item for item in TENSORS]
    return moved_to(device, given)


def moved_to(device, given):
    """Devices of opscan's own take their arguments together, and sparse tensors are moved whole."""
    away = [x for x, item in enumerate(TENSORS) if not isinstance(item, tuple) or not item[-1]]
    if OURS and device != "cpu":
        moved = OURS.upload_all([given[x] for x in away])
    else:
        moved = [given[x].to(device) for x in away]
    for place, tensor in zip(away, moved):
        given[place] = tensor
    return given


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return [] if value is None else [torch.tensor(value)]


def run(device, wrt, raised=False):
    """Outputs, or gradients of them, on the CPU."""
    torch.set_default_dtype(torch.float64 if raised else torch.float32)
    t = tensors(device, raised)
    if wrt is not None:
        return gradients(t, device, wrt, raised)
    with torch.no_grad():
        returned = flat(call(t, device, raise_dtype if raised else keep_dtype))
    changed = [t[place] for place in CHANGED if not any(t[place] is out for out in returned)]
    return [onto_host(out, device) for out in returned + changed]


def gradients(t, device, wrt, raised):
    leaves = [x.detach().requires_grad_(place in wrt) for place, x in enumerate(t)]
    given = [x.clone() if place in CHANGED else x for place, x in enumerate(leaves)]
    outputs = flat(call(given, device, raise_dtype if raised else keep_dtype))
    outputs = [out for out in outputs if out.requires_grad]
    generator = torch.Generator().manual_seed(0)
    single = dict(generator=generator, dtype=torch.float32)
    vectors = [torch.randn(out.shape, **single).to(out) for out in outputs]
    wanted = [x for x in leaves if x.requires_grad]
    found = torch.autograd.grad(outputs, wanted, vectors, allow_unused=True)
    return [onto_host(gradient, device) for gradient in found if gradient is not None]


def raise_dtype(dtype):
    return WIDE.get(dtype, dtype)


def keep_dtype(dtype):
    return dtype


def onto_host(tensor, device):
    """The tensor on the CPU, in the layout that it has on the device."""
    strides = tensor.stride() if tensor.layout == torch.strided else None
    if OURS and device != "cpu":
        tensor = OURS.download(tensor)
    tensor = tensor.detach().to("cpu").resolve_conj()
    if tensor.dtype == torch.complex32:
        tensor = tensor.to(torch.complex64)
    if strides is None:
        return tensor.to_dense()
    try:
        return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)
    except RuntimeError:
        return tensor  # its elements overlap


def steps(tensor):
    """Strides of dimensions with more than one element; the others mean nothing."""
    return [step for size, step in zip(tensor.shape, tensor.stride()) if size > 1]


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
    if steps(ours) != steps(theirs):
        print(f"  the CPU gives strides {{theirs.stride()}}")
        if LAYOUT:
            return False
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


def check(wrt):
    """0 when the device is right, 1 when it is wrong, 2 when nothing can be told, 3: it raises."""
    try:
        theirs = EXPECTED or run("cpu", wrt)
    except Exception as error:
        print(f"the CPU raises {{type(error).__name__}}: {{error}}")
        return 2 if wrt is CHECKS[0] else 0
    try:
        right = [None] * len(theirs) if EXPECTED else run("cpu", wrt, raised=True)
    except Exception:
        right = [None] * len(theirs)
    torch.set_default_dtype(torch.float32)
    try:
        ours = run(DEVICE, wrt)
    except Exception as error:
        print(f"the device raises {{type(error).__name__}}: {{error}}")
        return 3
    each = enumerate(zip(ours, theirs, right))
    good = [compare(n, *three) for n, three in each if wrt is not None or n not in PRIVATE]
    good.append(len(ours) == len(theirs))
    return 0 if all(good) else 1


def main():
    warnings.simplefilter("ignore")
    print(f"torch {{torch.__version__}}, {{DEVICE}}")
    for wrt in CHECKS:
        status = check(wrt)
        if status:
            break
    # Devices may end the process a little later.
    time.sleep({linger})
    print(VERDICTS[status])
    return 1 if status == 3 else status


sys.exit(main())
'''
