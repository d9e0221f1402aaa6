"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says something about the machine, not about the program.
settings.register_profile("opscan", deadline=None)
settings.load_profile("opscan")
