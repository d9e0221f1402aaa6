"""Finds inputs that a model accepts, by trying shapes that its layers and names suggest."""
