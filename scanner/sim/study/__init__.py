"""Looks closely at single ops of a simulated release: one op, or what two releases do."""
