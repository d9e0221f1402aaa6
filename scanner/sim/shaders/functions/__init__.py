"""What the `air.*` functions that kernels call mean: one classified lowering each."""
