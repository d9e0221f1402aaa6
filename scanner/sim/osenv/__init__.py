"""The operating system that emulated code finds: libc, libm, dyld, IOKit, Accelerate."""
