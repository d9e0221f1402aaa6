"""opscan: what an Apple GPU will do with a model, told before the training starts."""

__version__ = "0.1.0"
