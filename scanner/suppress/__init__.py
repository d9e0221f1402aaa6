"""What the user has accepted: ignores and baselines, as pure functions `Report -> Report`."""
