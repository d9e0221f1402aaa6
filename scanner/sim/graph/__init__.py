"""MPSGraph as data: what the host code built and ran."""
