"""What is known about operators, release by release, and where each fact comes from."""
