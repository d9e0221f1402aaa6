"""Devices that a probe can run ops on."""
