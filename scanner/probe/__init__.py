"""Runs op configurations on a device against a CPU reference."""
