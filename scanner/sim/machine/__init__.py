"""An arm64 process: memory, a CPU, and imports that are served from outside."""
