"""A small dynamic linker for arm64 Mach-O libraries."""
