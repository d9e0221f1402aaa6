"""Finds and loads the user's models, their inputs, losses and optimizers."""
