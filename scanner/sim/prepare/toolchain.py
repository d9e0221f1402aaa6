"""Compiles for arm64 macOS with the Zig toolchain, which needs no Apple software."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scanner.sim.prepare.errors import PrepareError

__all__ = ["build_glue", "build_runtime", "native_digest"]

NATIVE = Path(__file__).parent / "native"
_TARGET = ("-target", "aarch64-macos")
_LIBRARY = ("-shared", "-nostdlib", "-nostdlib++", "-Wl,-undefined,dynamic_lookup")
_UNWINDER = (
    "libunwind.cpp",
    "UnwindLevel1.c",
    "UnwindLevel1-gcc-ext.c",
    "UnwindRegistersRestore.S",
    "UnwindRegistersSave.S",
)
_RUNTIME = ("memory.c", "text.c", "threads.c")
_LAST_CXX17 = (2, 8)
_TOUCH = "int touch() { try { throw 1; } catch (int value) { return value; } }\n"


def native_digest() -> str:
    """Names the sources that are compiled; another digest asks for a new build."""
    hasher = hashlib.sha256()
    for source in sorted(NATIVE.iterdir()):
        hasher.update(source.name.encode() + b"\0" + source.read_bytes())
    return hasher.hexdigest()[:16]


def build_runtime(output: Path, work: Path) -> None:
    """Builds libc++, libc++abi, libunwind and our C runtime into one library.

    The first build of libc++ takes a minute or two.
    """
    work.mkdir(parents=True, exist_ok=True)
    touch = work / "touch.cpp"
    touch.write_text(_TOUCH)
    # Linking anything against libc++ makes zig build the archives into its cache.
    _zig(work, "c++", *_TARGET, "-O2", "-shared", "-o", work / "touch.dylib", touch)
    objects = [_unwinder(work, name) for name in _UNWINDER]
    objects += [_compile_c(work, name) for name in _RUNTIME]
    archives = [f"-Wl,-force_load,{_archive(work, name)}" for name in ("libc++.a", "libc++abi.a")]
    _zig(work, "c++", *_TARGET, *_LIBRARY, "-o", output, *archives, *objects)


def build_glue(output: Path, include: Path, release: str, work: Path) -> None:
    """Compiles the entry points against a release's own headers: about ten seconds."""
    work.mkdir(parents=True, exist_ok=True)
    version = tuple(int(part) for part in release.split(".")[:2])
    standard = "-std=c++17" if version <= _LAST_CXX17 else "-std=c++20"
    includes = [f"-I{include}", f"-I{include / 'torch/csrc/api/include'}"]
    compiled = work / "glue.o"
    source = NATIVE / "glue.cpp"
    flags = ("-O1", "-w", "-c", standard)
    _zig(work, "c++", *_TARGET, *flags, *includes, "-o", compiled, source)
    _zig(work, "c++", *_TARGET, *_LIBRARY, "-o", output, compiled)


def _unwinder(work: Path, name: str) -> Path:
    root = _zig_library() / "libunwind"
    compiled = work / f"{name}.o"
    flags: tuple[str, ...] = ("cc",)
    if name.endswith(".cpp"):
        flags = ("c++", "-std=c++20", "-fno-exceptions", "-fno-rtti")
    defines = ("-O2", "-c", f"-I{root / 'include'}", "-D_LIBUNWIND_IS_NATIVE_ONLY")
    _zig(work, *flags, *_TARGET, *defines, "-o", compiled, root / "src" / name)
    return compiled


def _compile_c(work: Path, name: str) -> Path:
    compiled = work / f"{name}.o"
    flags = ("-O2", "-w", "-c", "-fno-builtin", "-fno-sanitize=all")
    _zig(work, "cc", *_TARGET, *flags, "-o", compiled, NATIVE / name)
    return compiled


def _archive(work: Path, name: str) -> Path:
    found = sorted((work / "zig").rglob(name))
    if not found:
        raise PrepareError(
            f"the zig toolchain did not build {name}",
            remedy="Install ziglang >= 0.14, then prepare again.",
        )
    return found[0]


def _zig_library() -> Path:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise PrepareError(
            "the simulator needs the ziglang package",
            remedy='Install it: pip install "opscan-metal[sim]".',
        )
    return Path(spec.origin).parent / "lib"


def _zig(work: Path, *arguments: str | Path) -> None:
    _zig_library()
    cache = str(work / "zig")
    environment = {**os.environ, "ZIG_LOCAL_CACHE_DIR": cache, "ZIG_GLOBAL_CACHE_DIR": cache}
    command: Sequence[str] = [sys.executable, "-m", "ziglang", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        reason = (lines or done.stderr.splitlines() or ["no message"])[0]
        raise PrepareError(
            f"the zig toolchain could not compile {arguments[-1]}: {reason}",
            remedy="Report this with the release that you prepared.",
        )
