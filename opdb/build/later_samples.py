"""Samples that OpInfo of later releases has, and the installed torch refuses on every device.

They cannot be recorded, so the configuration that each comes to is written down here. Only known
issues are looked up for them; an issue that is not about a release changes nothing in it.
"""

from __future__ import annotations

from opdb.issues.calls import read_call
from scanner.records import OpCall

__all__ = ["later_calls"]

_LATER: dict[tuple[str, str], tuple[str, ...]] = {
    # sample_inputs_grid_sample in the wheel of torch 2.15.0: volumes with mode="bicubic".
    ("nn.functional.grid_sample", ""): (
        "grid_sampler_3d(input={0}[2,3,5,5,5], grid={0}[2,5,5,5,3], interpolation_mode=2, "
        "padding_mode=0, align_corners=False)",
    ),
}


def later_calls(name: str, variant: str, dtype: str) -> tuple[OpCall, ...]:
    """Configurations of an OpInfo entry with one dtype, `float32`."""
    return tuple(read_call(text.format(dtype)) for text in _LATER.get((name, variant), ()))
