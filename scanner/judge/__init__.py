"""Says what each target does with each configuration, and what the user should do about it."""
