"""The classes of Foundation that are used, and the process information."""

from __future__ import annotations

from scanner.sim.objc.collections import (
    NSArray,
    NSDictionary,
    NSMutableArray,
    NSMutableDictionary,
)
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Class, Object, Result, class_method, method
from scanner.sim.objc.numbers import NSNumber
from scanner.sim.objc.runtime import Runtime
from scanner.sim.objc.sets import NSMutableSet
from scanner.sim.objc.strings import NSURL, NSData, NSError, NSString

__all__ = ["install"]


class ProcessInfo(Object):
    """NSProcessInfo: which macOS this is."""

    name = "NSProcessInfo"

    def __init__(self, version: tuple[int, int]) -> None:
        super().__init__()
        self._version = version

    @class_method("processInfo")
    @staticmethod
    def shared(kind: Class, message: Message) -> Result:
        """The process."""
        return kind.make()

    @method("isOperatingSystemAtLeastVersion:")
    def at_least(self, message: Message) -> Result:
        """Compares with {major, minor, patch}."""
        major, minor, _ = message.triple(0)
        return (major, minor) <= self._version

    @method("operatingSystemVersionString")
    def text(self, message: Message) -> Result:
        """`Version 15.5`."""
        return message.runtime.string("Version {}.{}".format(*self._version))


class AutoreleasePool(Object):
    """NSAutoreleasePool: nothing is released by it."""

    name = "NSAutoreleasePool"

    @method("drain")
    def drain(self, message: Message) -> Result:
        """Nothing to do."""


def install(runtime: Runtime, macos: tuple[int, int]) -> None:
    """Introduces the classes."""
    for kind in (
        NSArray,
        NSData,
        NSDictionary,
        NSError,
        NSMutableArray,
        NSMutableDictionary,
        NSMutableSet,
        NSNumber,
        NSString,
        NSURL,
        AutoreleasePool,
        Object,
    ):
        runtime.define(kind)
    runtime.define(ProcessInfo, lambda: ProcessInfo(macos))
