"""Facts from execution: PyTorch's own samples, called in simulated releases."""
