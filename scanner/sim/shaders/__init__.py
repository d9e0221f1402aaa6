"""Runs the Metal kernels inside a PyTorch wheel on the CPU.

`library` finds a kernel's bitcode, `kernel` reads what it wants to be called with, `functions` says
what every external it calls means, `compiler` makes machine code of it, `worker` runs that in a
process that may die, and `executor` is what the rest of the simulator calls.
"""
