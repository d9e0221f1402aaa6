"""What an issue makes of a configuration's status."""

from __future__ import annotations

from opdb.issues.records import Effect
from scanner.records import Status

__all__ = ["STATUS"]

STATUS: dict[Effect, Status] = {
    "crash": "crash",
    "hang": "crash",
    "unsupported": "unsupported",
    "wrong-values": "wrong",
    "wrong-gradients": "wrong",
    "nan": "nan",
    "fallback": "fallback",
    "slow": "slow",
}
"""Effects that are a verdict. Memory that is not given back is a finding only: the op computes what
it should."""
