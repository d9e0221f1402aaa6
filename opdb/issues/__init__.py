"""Known issues: what is registered for MPS and yet raises, crashes or computes wrong values."""
