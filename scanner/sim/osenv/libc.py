"""The C library: time, the environment, files, and what never does anything here.

Whatever could make two runs differ is fixed: the time, the entropy, the process id.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from scanner.sim.machine.cpu import Cpu, Handler
from scanner.sim.machine.faults import Fault
from scanner.sim.machine.memory import PAGE
from scanner.sim.osenv import numerals, scanf, stdio
from scanner.sim.osenv.ctype import CLASSES

__all__ = ["imports"]

_NOW = 1_700_000_000
_ENTROPY = b"\x5a"
_URANDOM = 3
_ENOENT = 2
_ZERO = [
    "_fflush",
    "_fclose",
    "_signal",
    "_sigaction",
    "_sigprocmask",
    "_mprotect",
    "_munmap",
    "_setlocale",
    "_access",
    "_backtrace",
    "_backtrace_symbols",
    "_dladdr",
    "_os_log_create",
    "_os_signpost_enabled",
    "_close",
    "__dyld_register_func_for_remove_image",
    "_dispatch_release",
    "_srand",
    "_usleep",
    "_nanosleep",
    "_flockfile",
    "_funlockfile",
    "_mach_thread_self",
    "_dispatch_semaphore_signal",
    "_CFRelease",
    "_dispatch_semaphore_wait",
    "_getpriority",
    "___clear_cache",
    "_os_signpost_id_generate",
    "_os_signpost_id_make_with_pointer",
    "__os_signpost_emit_with_name_impl",
    "_mach_port_deallocate",
    "_dispatch_assert_queue$V2",
]


def imports(
    console: stdio.Console, environment: dict[str, str], allocate: Callable[[int], int]
) -> dict[str, Handler]:
    """Handlers by import name. `allocate` gives memory that is never freed."""
    found: dict[str, Handler] = {name: _constant(0) for name in _ZERO}
    found |= {name: _constant(1) for name in ("_getpid", "_newlocale", "____mb_cur_max_l")}
    found |= {"_getpagesize": _constant(PAGE), "_sysconf": _constant(4)}
    found |= {"_getppid": _constant(1), "_isatty": _constant(0), "_rand": _constant(4)}
    found |= stdio.imports(console)
    found |= numerals.imports()
    found |= scanf.imports()
    found |= _time(allocate)
    found |= _files(allocate)
    found |= _characters()
    found |= {
        "_getenv": _getenv(environment, allocate),
        "_abort": _abort(console),
        "_exit": _abort(console),
        "__exit": _abort(console),
        "___stack_chk_fail": _abort(console),
        "___error": _constant(allocate(16)),
        "___chkstk_darwin": lambda cpu: None,
        "_opscan_copy": _copy,
        "_opscan_fill": _fill,
        "_opscan_heap_exhausted": _exhausted,
        "_arc4random": _constant(4),
        "_uname": _fail,
        "_gethostname": _fail,
        "_sysctl": _fail,
        "_mbtowc_l": _constant(0),
        "_sched_get_priority_max": _constant(0),
        "_strerror": _constant(_text(allocate, "error")),
    }
    return found


def _text(allocate: Callable[[int], int], text: str) -> int:
    return allocate(len(text) + 1)


def _constant(value: int) -> Handler:
    return lambda cpu: cpu.set_x(0, value)


def _fail(cpu: Cpu) -> None:
    cpu.set_x(0, -1)


def _copy(cpu: Cpu) -> None:
    cpu.memory.write(cpu.x(0), cpu.memory.read(cpu.x(1), cpu.x(2)))


def _fill(cpu: Cpu) -> None:
    cpu.memory.write(cpu.x(0), bytes([cpu.x(1) & 0xFF]) * cpu.x(2))


def _exhausted(cpu: Cpu) -> None:
    raise Fault(f"the emulated heap is exhausted by an allocation of {cpu.x(0)} bytes")


def _abort(console: stdio.Console) -> Handler:
    def abort(cpu: Cpu) -> None:
        last = console.text.strip().splitlines()[-1:]
        raise Fault("the process aborted" + (f": {last[0][:200]}" if last else ""))

    return abort


def _getenv(environment: dict[str, str], allocate: Callable[[int], int]) -> Handler:
    places: dict[str, int] = {}

    def getenv(cpu: Cpu) -> None:
        name = cpu.memory.text(cpu.x(0))
        if name not in environment:
            cpu.set_x(0, 0)
            return
        if name not in places:
            raw = environment[name].encode() + b"\0"
            places[name] = allocate(len(raw))
            cpu.memory.write(places[name], raw)
        cpu.set_x(0, places[name])

    return getenv


def _time(allocate: Callable[[int], int]) -> dict[str, Handler]:
    calendar = allocate(64)

    def clock(cpu: Cpu) -> None:
        cpu.memory.write(cpu.x(1), struct.pack("<qq", _NOW, 0))
        cpu.set_x(0, 0)

    def day(cpu: Cpu) -> None:
        place = cpu.x(1)
        cpu.memory.write(place, struct.pack("<9i", 0, 0, 0, 1, 0, 123, 0, 0, 0))
        cpu.set_x(0, place)

    def timeofday(cpu: Cpu) -> None:
        cpu.memory.write(cpu.x(0), struct.pack("<qq", _NOW, 0))
        cpu.set_x(0, 0)

    def timebase(cpu: Cpu) -> None:
        cpu.memory.write(cpu.x(0), struct.pack("<II", 1, 1))
        cpu.set_x(0, 0)

    return {
        "_clock_gettime": clock,
        "_clock_gettime_nsec_np": _constant(1000),
        "_mach_absolute_time": _constant(1000),
        "_mach_continuous_time": _constant(1000),
        "_mach_timebase_info": timebase,
        "_time": _constant(_NOW),
        "_gettimeofday": timeofday,
        "_localtime_r": day,
        "_gmtime_r": day,
        "_localtime": _constant(calendar),
        "_strftime": _constant(0),
    }


def _files(allocate: Callable[[int], int]) -> dict[str, Handler]:
    """No file exists but the source of entropy."""

    def opened(cpu: Cpu) -> None:
        found = cpu.memory.text(cpu.x(0)) in ("/dev/urandom", "/dev/random")
        cpu.set_x(0, _URANDOM if found else -1)

    def read(cpu: Cpu) -> None:
        cpu.memory.write(cpu.x(1), _ENTROPY * cpu.x(2))
        cpu.set_x(0, cpu.x(2))

    def mapped(cpu: Cpu) -> None:
        cpu.set_x(0, allocate(cpu.x(1)))

    return {
        "_open": opened,
        "_read": read,
        "_mmap": mapped,
        "_fopen": _constant(0),
        "_dlopen": _constant(0),
        "_dlsym": _constant(0),
        "_stat": _fail,
        "_lstat": _fail,
        "_mkdir": _fail,
    }


def _characters() -> dict[str, Handler]:
    def maskrune(cpu: Cpu) -> None:
        code = cpu.x(0) & 0xFFFFFFFF
        cpu.set_x(0, CLASSES[code] & cpu.x(1) & 0xFFFFFFFF if code < len(CLASSES) else 0)

    def lower(cpu: Cpu) -> None:
        cpu.set_x(0, ord(chr(cpu.x(0) & 0x7F).lower()))

    def upper(cpu: Cpu) -> None:
        cpu.set_x(0, ord(chr(cpu.x(0) & 0x7F).upper()))

    found: dict[str, Handler] = dict.fromkeys(("___maskrune", "___maskrune_l"), maskrune)
    found |= dict.fromkeys(("___tolower", "____tolower_l", "_tolower"), lower)
    return found | dict.fromkeys(("___toupper", "____toupper_l", "_toupper"), upper)
