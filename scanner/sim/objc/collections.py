"""NSArray, NSDictionary. Elements are kept as the addresses that were put in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scanner.sim.objc.methods import Object, Result, class_method, method
from scanner.sim.objc.numbers import NSNumber
from scanner.sim.objc.strings import NSString

if TYPE_CHECKING:
    from scanner.sim.objc.message import Message
    from scanner.sim.objc.methods import Class
    from scanner.sim.objc.runtime import Runtime

__all__ = ["NSArray", "NSDictionary", "NSMutableArray", "NSMutableDictionary"]


def _enumerate(message: Message, items: list[int]) -> int:
    """NSFastEnumeration: {state, itemsPtr, mutationsPtr, extra[5]} and a buffer of `count`."""
    state, buffer, room = (message.word(index) for index in range(3))
    memory = message.cpu.memory
    done = memory.u64(state)
    batch = items[done : done + room]
    for index, item in enumerate(batch):
        memory.set_u64(buffer + 8 * index, item)
    for index, word in enumerate((done + len(batch), buffer, state + 24)):
        memory.set_u64(state + 8 * index, word)
    return len(batch)


def _key(runtime: Runtime, address: int) -> Any:
    """What two equal keys have in common."""
    found = runtime.find(address)
    if isinstance(found, NSNumber | NSString):
        return found.value()
    return address


class NSArray(Object):
    """An array of object addresses."""

    name = "NSArray"

    def __init__(self, items: list[int] | None = None) -> None:
        super().__init__()
        self.items = [] if items is None else items

    @class_method("array", "arrayWithCapacity:")
    @staticmethod
    def empty(kind: Class, message: Message) -> Result:
        """An empty array."""
        return kind.make()

    @class_method("arrayWithObjects:count:")
    @staticmethod
    def from_objects(kind: Class, message: Message) -> Result:
        """From a C array."""
        made: Any = kind.make()
        made.items = list(message.cpu.memory.words(message.word(0), message.word(1)))
        return made

    @class_method("arrayWithArray:")
    @staticmethod
    def from_array(kind: Class, message: Message) -> Result:
        """A copy of another array."""
        made: Any = kind.make()
        made.items = list(message.object(0).items)
        return made

    @method("initWithCapacity:")
    def initialise(self, message: Message) -> Result:
        """Capacity is only a hint."""
        return self

    @method("initWithObjects:count:")
    def initialise_objects(self, message: Message) -> Result:
        """From a C array."""
        self.items = list(message.cpu.memory.words(message.word(0), message.word(1)))
        return self

    @method("count")
    def count(self, message: Message) -> Result:
        """Number of elements."""
        return len(self.items)

    @method("objectAtIndexedSubscript:", "objectAtIndex:")
    def item(self, message: Message) -> Result:
        """Element at an index."""
        return self.items[message.word(0)]

    @method("firstObject")
    def first(self, message: Message) -> Result:
        """The first element, or nil."""
        return self.items[0] if self.items else 0

    @method("lastObject")
    def last(self, message: Message) -> Result:
        """The last element, or nil."""
        return self.items[-1] if self.items else 0

    @method("containsObject:")
    def contains(self, message: Message) -> Result:
        """Whether an equal element is there."""
        wanted = _key(message.runtime, message.word(0))
        return any(_key(message.runtime, item) == wanted for item in self.items)

    @method("isEqualToArray:", "isEqual:")
    def equals(self, message: Message) -> Result:
        """Whether all elements are equal."""
        mine = [_key(message.runtime, item) for item in self.items]
        return mine == [_key(message.runtime, item) for item in message.object(0).items]

    @method("copy")
    def copy(self, message: Message) -> Result:
        """An array of its own: the original may change later."""
        return NSArray(list(self.items))

    @method("mutableCopy")
    def mutable_copy(self, message: Message) -> Result:
        """A mutable array of its own."""
        return NSMutableArray(list(self.items))

    @method("countByEnumeratingWithState:objects:count:")
    def enumerate(self, message: Message) -> Result:
        """One batch of a `for … in` loop."""
        return _enumerate(message, self.items)

    @method("componentsJoinedByString:")
    def join(self, message: Message) -> Result:
        """Descriptions of all elements with a separator."""
        texts = [str(message.runtime.find(item).value()) for item in self.items]
        return NSString(message.text(0).join(texts))

    @method("valueForKey:")
    def value_for_key(self, message: Message) -> Result:
        """Only `description` and `stringValue` are asked of elements."""
        runtime = message.runtime
        texts = [runtime.string(str(runtime.find(item).value())) for item in self.items]
        return NSArray([text.address for text in texts])


class NSMutableArray(NSArray):
    """An array that can change."""

    name = "NSMutableArray"

    @method("addObject:")
    def add(self, message: Message) -> Result:
        """Appends."""
        self.items.append(message.word(0))

    @method("addObjectsFromArray:")
    def extend(self, message: Message) -> Result:
        """Appends all of another array."""
        self.items.extend(message.object(0).items)

    @method("insertObject:atIndex:")
    def insert(self, message: Message) -> Result:
        """Inserts before an index."""
        self.items.insert(message.word(1), message.word(0))

    @method("removeObjectAtIndex:")
    def remove(self, message: Message) -> Result:
        """Removes at an index."""
        del self.items[message.word(0)]

    @method("removeLastObject")
    def remove_last(self, message: Message) -> Result:
        """Removes the last element."""
        self.items.pop()

    @method("removeAllObjects")
    def clear(self, message: Message) -> Result:
        """Removes everything."""
        self.items.clear()

    @method("setObject:atIndexedSubscript:")
    def put(self, message: Message) -> Result:
        """Replaces, or appends at the end."""
        index = message.word(1)
        self.items[index : index + 1] = [message.word(0)]

    @method("replaceObjectAtIndex:withObject:")
    def replace(self, message: Message) -> Result:
        """Replaces."""
        self.items[message.word(0)] = message.word(1)


class NSDictionary(Object):
    """A dictionary of addresses; numbers and strings are equal by value."""

    name = "NSDictionary"

    def __init__(self, pairs: dict[int, int] | None = None) -> None:
        super().__init__()
        self.pairs = {} if pairs is None else pairs

    def _find(self, message: Message, address: int) -> int | None:
        """The key that equals an object."""
        if address in self.pairs:
            return address
        wanted = _key(message.runtime, address)
        for known in self.pairs:
            if _key(message.runtime, known) == wanted:
                return known
        return None

    @class_method("dictionary", "dictionaryWithCapacity:")
    @staticmethod
    def empty(kind: Class, message: Message) -> Result:
        """An empty dictionary."""
        return kind.make()

    @class_method("dictionaryWithObjects:forKeys:count:")
    @staticmethod
    def from_objects(kind: Class, message: Message) -> Result:
        """From two C arrays."""
        values, keys, count = (message.word(index) for index in range(3))
        memory = message.cpu.memory
        made: Any = kind.make()
        made.pairs = dict(zip(memory.words(keys, count), memory.words(values, count), strict=True))
        return made

    @method("initWithCapacity:")
    def initialise(self, message: Message) -> Result:
        """Capacity is only a hint."""
        return self

    @method("count")
    def count(self, message: Message) -> Result:
        """Number of keys."""
        return len(self.pairs)

    @method("objectForKeyedSubscript:", "objectForKey:")
    def get(self, message: Message) -> Result:
        """Value of an equal key, or nil."""
        known = self._find(message, message.word(0))
        return 0 if known is None else self.pairs[known]

    @method("allKeys")
    def keys(self, message: Message) -> Result:
        """All keys."""
        return NSArray(list(self.pairs))

    @method("allValues")
    def values(self, message: Message) -> Result:
        """All values."""
        return NSArray(list(self.pairs.values()))

    @method("copy")
    def copy(self, message: Message) -> Result:
        """A dictionary of its own: the original may change later."""
        return NSDictionary(dict(self.pairs))

    @method("mutableCopy")
    def mutable_copy(self, message: Message) -> Result:
        """A mutable dictionary of its own."""
        return NSMutableDictionary(dict(self.pairs))

    @method("countByEnumeratingWithState:objects:count:")
    def enumerate(self, message: Message) -> Result:
        """One batch of keys."""
        return _enumerate(message, list(self.pairs))


class NSMutableDictionary(NSDictionary):
    """A dictionary that can change."""

    name = "NSMutableDictionary"

    @method("setObject:forKeyedSubscript:", "setObject:forKey:", "setValue:forKey:")
    def put(self, message: Message) -> Result:
        """Adds or replaces."""
        known = self._find(message, message.word(1))
        self.pairs[message.word(1) if known is None else known] = message.word(0)

    @method("removeObjectForKey:")
    def remove(self, message: Message) -> Result:
        """Forgets a key."""
        known = self._find(message, message.word(0))
        if known is not None:
            del self.pairs[known]
