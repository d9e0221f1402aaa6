"""Who is who: objects by address, classes by name, and the delivery of messages."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from scanner.sim.machine.cpu import Cpu, Handler
from scanner.sim.machine.faults import Fault, MissingImport
from scanner.sim.machine.memory import BadAddress, Memory
from scanner.sim.objc import constants
from scanner.sim.objc.message import Message
from scanner.sim.objc.methods import Class, Float, Object, Result
from scanner.sim.objc.strings import NSString

__all__ = ["CLASS_PREFIX", "Runtime"]

CLASS_PREFIX = "_OBJC_CLASS_$_"
_FIRST = 0x7_4000_0000
"""Objects have addresses in a range that is not mapped: nobody may look inside them."""
_SIZE = 16
_SELF = frozenset({"retain", "autorelease", "init", "self", "class"})
_O = TypeVar("_O", bound=Object)


class Runtime:
    """The imitated runtime of one process."""

    def __init__(
        self, memory: Memory, data: dict[str, int], allocate: Callable[[int], int]
    ) -> None:
        """`data` are addresses of imported data, class objects among them.

        `allocate` gives memory that is never freed, for what emulated code reads.
        """
        self.memory = memory
        self.allocate = allocate
        self.selectors: dict[str, int] = {}
        """How often each selector was sent."""
        self._objects: dict[int, Object] = {}
        self._classes: dict[str, Class] = {}
        self._addresses = {
            name.removeprefix(CLASS_PREFIX): address
            for name, address in data.items()
            if name.startswith(CLASS_PREFIX)
        }
        self._kinds = {address: name for name, address in self._addresses.items()}
        self._names: dict[int, str] = {}
        self._next = _FIRST
        self._pool: list[Callable[[str], Class | None]] = []
        for name, kind in constants.CLASSES.items():
            if name in data:
                self._kinds[data[name]] = kind
        for name, make in constants.SINGLETONS.items():
            if name in data:
                self._place(make(), data[name])

    def define(self, kind: type[Object], make: Callable[[], Object] | None = None) -> None:
        """Introduces a class whose instances are made by `make` (by default, the type)."""
        self._introduce(Class(kind.name, make or kind, kind.class_answers))

    def define_family(self, find: Callable[[str], Class | None]) -> None:
        """Asks `find` for classes that are met for the first time."""
        self._pool.append(find)

    def define_at(self, kind: Class, address: int) -> None:
        """Introduces a class that lies in a library."""
        self._classes[kind.name] = kind
        self._place(kind, address)

    def adopt(self, thing: _O) -> _O:
        """Gives an object an address."""
        if not thing.address:
            thing.address = self._next
            self._next += _SIZE
            self._objects[thing.address] = thing
        return thing

    def find(self, address: int) -> Any:
        """The object at an address: adopted, a class, or a constant in a library. None for nil."""
        if not address:
            return None
        known = self._objects.get(address)
        if known is None:
            known = self._class_at(address) or self._constant(address)
            if known is None:
                raise Fault(f"{address:#x} is not an object")
        return known

    def is_object(self, address: int) -> bool:
        """Whether a word is the address of an object."""
        try:
            return self.find(address) is not None
        except Fault:
            return False

    def text(self, address: int) -> str:
        """Text of a string object."""
        found = self.find(address)
        if not isinstance(found, NSString):
            raise Fault(f"{address:#x} is not a string object")
        return found.text

    def string(self, text: str) -> NSString:
        """A new string object."""
        return self.adopt(NSString(text))

    def class_named(self, name: str) -> Class:
        """A class by name; MissingImport when nobody imitates it."""
        known = self._classes.get(name)
        if known is not None:
            return known
        for find in self._pool:
            found = find(name)
            if found is not None:
                self._introduce(found)
                return found
        raise MissingImport(f"_OBJC_CLASS_$_{name}")

    def imports(self) -> dict[str, Handler]:
        """What libraries import from the Objective-C library."""
        return {
            "_objc_msgSend": self._send,
            "_objc_retain": self._retain,
            "_objc_release": self._release,
            "_objc_autorelease": lambda cpu: None,
            "_objc_autoreleasePoolPush": lambda cpu: cpu.set_x(0, 1),
            "_objc_autoreleasePoolPop": lambda cpu: None,
            "_objc_alloc": self._new,
            "_objc_alloc_init": self._new,
            "_objc_opt_new": self._new,
            "_objc_opt_respondsToSelector": lambda cpu: cpu.set_x(0, int(cpu.x(0) != 0)),
            "_NSClassFromString": self._class_from_string,
        }

    def objects(self) -> Collection[Object]:
        """All objects that were adopted."""
        return self._objects.values()

    def _introduce(self, kind: Class) -> None:
        self._classes[kind.name] = kind
        address = self._addresses.get(kind.name)
        if address is None:
            self.adopt(kind)
        else:
            self._place(kind, address)

    def _class_at(self, address: int) -> Class | None:
        name = self._kinds.get(address)
        return (
            None if name is None or name in constants.CLASSES.values() else self.class_named(name)
        )

    def _place(self, thing: Object, address: int) -> None:
        thing.address = address
        self._objects[address] = thing

    def _constant(self, address: int) -> Object | None:
        try:
            kind = self.memory.u64(address)
        except BadAddress:
            return None
        found = constants.read(self.memory, self._kinds.get(kind, ""), address)
        if found is not None:
            self._place(found, address)
        return found

    def _send(self, cpu: Cpu) -> None:
        selector_at = cpu.x(1)
        selector = self._names.get(selector_at)
        if selector is None:
            selector = self._names[selector_at] = self.memory.text(selector_at)
        self.selectors[selector] = self.selectors.get(selector, 0) + 1
        receiver = self.find(cpu.x(0))
        if receiver is None:
            cpu.set_d(0, 0.0)
            return
        message = Message(cpu, self, selector)
        _return(cpu, self, self._answer(receiver, message))

    def _answer(self, receiver: Object, message: Message) -> Result:
        selector = message.selector
        if isinstance(receiver, Class):
            return self._answer_class(receiver, message)
        answer = receiver.answers.get(selector)
        if answer is not None:
            return answer(receiver, message)
        if selector == "release":
            return receiver.release()
        if selector == "retainCount":
            return receiver.references
        if selector in _SELF:
            if selector == "retain":
                receiver.retain()
            return receiver
        if selector == "respondsToSelector:":
            return 1
        return receiver.otherwise(message)

    def _answer_class(self, kind: Class, message: Message) -> Result:
        selector = message.selector
        answer = kind.own.get(selector)
        if answer is not None:
            return answer(kind, message)
        if selector in ("new", "alloc"):
            return kind.make()
        if selector in _SELF:
            return kind
        if selector in ("instancesRespondToSelector:", "respondsToSelector:"):
            return 1
        return kind.otherwise(message)

    def _new(self, cpu: Cpu) -> None:
        kind = self.find(cpu.x(0))
        if not isinstance(kind, Class):
            raise Fault("allocation of something that is not a class")
        _return(cpu, self, kind.make())

    def _retain(self, cpu: Cpu) -> None:
        found = self.find(cpu.x(0))
        if found is not None:
            found.retain()

    def _release(self, cpu: Cpu) -> None:
        found = self.find(cpu.x(0))
        if found is not None:
            found.release()

    def _class_from_string(self, cpu: Cpu) -> None:
        _return(cpu, self, self.class_named(self.text(cpu.x(0))))


def _return(cpu: Cpu, runtime: Runtime, result: Result) -> None:
    if isinstance(result, Object):
        cpu.set_x(0, runtime.adopt(result).address)
    elif isinstance(result, float):
        cpu.set_d(0, result)
    elif isinstance(result, Float):
        cpu.set_s(0, result.value)
    elif isinstance(result, tuple):
        for index, word in enumerate(result):
            cpu.set_x(index, word)
    else:
        cpu.set_x(0, int(result or 0))
