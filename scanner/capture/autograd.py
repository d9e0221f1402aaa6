"""What autograd does below a dispatch mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["autograd_seen", "sequence_number"]


@contextmanager
def autograd_seen() -> Iterator[None]:
    """Lets ops below a dispatch mode be recorded by autograd."""
    keys = ("AutogradFunctionality", "ADInplaceOrView")
    excluded = [key for key in keys if torch._C._dispatch_tls_is_dispatch_key_excluded(key)]
    for key in excluded:
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
    try:
        yield
    finally:
        for key in excluded:
            torch._C._dispatch_tls_set_dispatch_key_excluded(key, True)


def sequence_number() -> int:
    """The number that autograd's next node will get."""
    return int(torch._C._autograd._get_sequence_nr())
