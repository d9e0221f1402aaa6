"""The MPS backend in software: a release's own host code emulated, its shaders run on the CPU."""
