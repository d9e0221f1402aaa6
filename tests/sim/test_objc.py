from __future__ import annotations

import struct

import pytest

from scanner.sim.machine.faults import Fault, MissingImport, MissingSelector
from scanner.sim.objc.collections import NSArray, NSMutableArray
from scanner.sim.objc.methods import Object, method
from scanner.sim.objc.numbers import NSNumber
from scanner.sim.objc.runtime import Runtime
from scanner.sim.objc.strings import NSString
from tests.sim.bench import Objects, new_bench


def numbers(objects: Objects, array: NSArray) -> list[object]:
    return [objects.runtime.find(item).value() for item in array.items]


@pytest.mark.parametrize(
    ("selector", "word", "value"),
    [
        ("numberWithInteger:", (1 << 64) - 3, -3),
        ("numberWithInt:", 0xFFFFFFFF, -1),
        ("numberWithInt:", 0xAAAA_0000_0005, 5),
        ("numberWithUnsignedInt:", 0xFFFFFFFF, 4294967295),
        ("numberWithUnsignedLongLong:", (1 << 64) - 1, (1 << 64) - 1),
        ("numberWithBool:", 0x101, True),
    ],
)
def test_numbers(objects: Objects, selector: str, word: int, value: int) -> None:
    made = objects.send("NSNumber", selector, word)
    assert isinstance(made, NSNumber)
    assert made.value() == value
    assert objects.send_raw(made, "longLongValue") == int(value) % (1 << 64)


def test_floating_numbers_come_and_go_in_vector_registers(objects: Objects) -> None:
    made = objects.send("NSNumber", "numberWithDouble:", floats=[0.1])
    objects.send_raw(made, "doubleValue")
    assert objects.bench.cpu.d(0) == 0.1
    objects.send_raw(made, "floatValue")
    assert objects.bench.cpu.s(0) == struct.unpack("<f", struct.pack("<f", 0.1))[0]


def test_strings(objects: Objects) -> None:
    text = objects.bench.text("erf_float")
    made = objects.send("NSString", "stringWithUTF8String:", text)
    assert made.text == "erf_float"
    place = objects.send_raw(made, "UTF8String")
    assert objects.bench.memory.text(place) == "erf_float"
    assert objects.send_raw(made, "UTF8String") == place
    assert objects.send_raw(made, "length") == 9
    same = objects.runtime.string("erf_float")
    assert objects.send_raw(made, "isEqualToString:", same) == 1
    assert objects.send_raw(made, "hasPrefix:", objects.runtime.string("erf_")) == 1


def test_string_formats_take_their_arguments_from_the_stack(objects: Objects) -> None:
    form = objects.runtime.string("%@ has %d of %s")
    number = objects.send("NSNumber", "numberWithInt:", 3)
    made = objects.send(
        "NSString",
        "stringWithFormat:",
        form,
        *[0] * 5,
        number,
        7,
        objects.bench.text("nine"),
    )
    assert made.text == "3 has 7 of nine"


def test_arrays(objects: Objects) -> None:
    array = objects.array(5, 6, 7)
    assert objects.send_raw(array, "count") == 3
    assert objects.send(array, "objectAtIndexedSubscript:", 1).value() == 6
    assert objects.send(array, "lastObject").value() == 7
    joined = objects.send(array, "componentsJoinedByString:", objects.runtime.string(","))
    assert joined.text == "5,6,7"
    six = objects.send("NSNumber", "numberWithInt:", 6)
    assert objects.send_raw(array, "containsObject:", six) == 1
    assert objects.send_raw(array, "isEqualToArray:", objects.array(5, 6, 7)) == 1


def test_a_copy_does_not_follow_its_original(objects: Objects) -> None:
    original = objects.send(objects.array(1, 2), "mutableCopy")
    assert isinstance(original, NSMutableArray)
    copied = objects.send(original, "copy")
    objects.send(original, "addObject:", objects.array(9))
    objects.send(original, "removeObjectAtIndex:", 0)
    assert numbers(objects, copied) == [1, 2]
    assert len(original.items) == 2


def test_mutable_arrays(objects: Objects) -> None:
    array = objects.send("NSMutableArray", "arrayWithCapacity:", 4)
    one, two = objects.array(1), objects.array(2)
    objects.send(array, "setObject:atIndexedSubscript:", one, 0)
    objects.send(array, "insertObject:atIndex:", two, 0)
    assert array.items == [two.address, one.address]
    objects.send(array, "setObject:atIndexedSubscript:", one, 0)
    assert array.items == [one.address, one.address]


def test_for_in_loops_get_batches(objects: Objects) -> None:
    """{state, itemsPtr, mutationsPtr, extra}; state counts what was given."""
    array = objects.array(1, 2, 3)
    state, buffer = objects.bench.words(*[0] * 8), objects.bench.words(0, 0)
    selector = "countByEnumeratingWithState:objects:count:"
    counts = [objects.send_raw(array, selector, state, buffer, 2) for _ in range(3)]
    assert counts == [2, 1, 0]
    assert objects.bench.memory.u64(state) == 3
    assert objects.bench.memory.u64(state + 8) == buffer
    assert objects.bench.memory.u64(buffer) == array.items[2]


def test_dictionary_keys_are_equal_by_value(objects: Objects) -> None:
    made = objects.send("NSMutableDictionary", "dictionary")
    value = objects.array(1)
    objects.send(made, "setObject:forKeyedSubscript:", value, objects.runtime.string("key"))
    found = objects.send(made, "objectForKeyedSubscript:", objects.runtime.string("key"))
    assert found is value
    assert objects.send_raw(made, "objectForKey:", objects.runtime.string("other")) == 0
    objects.send(made, "setObject:forKey:", objects.array(2), objects.runtime.string("key"))
    assert objects.send_raw(made, "count") == 1


@pytest.mark.parametrize("selector", ["copy", "mutableCopy"])
def test_a_copied_dictionary_is_its_own(objects: Objects, selector: str) -> None:
    original = objects.send("NSMutableDictionary", "dictionary")
    key = objects.runtime.string("key")
    objects.send(original, "setObject:forKey:", objects.array(1), key)
    copied = objects.send(original, selector)
    objects.send(original, "removeObjectForKey:", key)
    assert objects.send_raw(copied, "count") == 1


def test_nil_answers_zero(objects: Objects) -> None:
    objects.bench.cpu.set_d(0, 5.0)
    assert objects.send_raw(None, "anything:at:all:", 1, 2, 3) == 0
    assert objects.bench.cpu.d(0) == 0.0


def test_a_method_that_nobody_answers_is_named(objects: Objects) -> None:
    array = objects.array()
    with pytest.raises(MissingSelector, match=r"\[NSArray sortedArrayUsing:\] is not imitated"):
        objects.send(array, "sortedArrayUsing:", 0)


def test_a_class_that_nobody_imitates_is_named(objects: Objects) -> None:
    with pytest.raises(MissingImport, match="UIView"):
        objects.runtime.class_named("UIView")


def test_what_is_not_an_object_gets_no_message(objects: Objects) -> None:
    with pytest.raises(Fault, match="0x1234 is not an object"):
        objects.send(0x1234, "count")


def test_the_last_release_deallocates(objects: Objects) -> None:
    gone: list[bool] = []

    class Thing(Object):
        name = "Thing"

        def deallocate(self) -> None:
            gone.append(True)

        @method("double:")
        def double(self, message: object) -> float:
            return 2.0

    thing = objects.runtime.adopt(Thing())
    handlers = objects.runtime.imports()
    objects.send(thing, "retain")
    objects.bench.serve(handlers["_objc_retain"], thing.address)
    assert objects.send_raw(thing, "retainCount") == 3
    objects.send(thing, "release")
    objects.bench.serve(handlers["_objc_release"], thing.address)
    assert not gone
    objects.send(thing, "release")
    assert gone


def test_the_version_of_the_system(objects: Objects) -> None:
    info = objects.send("NSProcessInfo", "processInfo")
    ask = "isOperatingSystemAtLeastVersion:"
    answers = [
        objects.send_raw(info, ask, objects.bench.words(*version))
        for version in ((14, 9, 0), (15, 5, 0), (15, 6, 0), (26, 0, 0))
    ]
    assert answers == [1, 1, 0, 0]


def test_literals_in_a_library_are_objects() -> None:
    """{isa, flags, text, length}; {isa, encoding, value}; {isa, count, items}."""
    bench = new_bench()
    imports = bench.imports
    string_class = imports.resolve("___CFConstantStringClassReference")
    integer_class = imports.resolve("_OBJC_CLASS_$_NSConstantIntegerNumber")
    array_class = imports.resolve("_OBJC_CLASS_$_NSConstantArray")
    empty = imports.resolve("___NSArray0__struct")
    string = bench.words(string_class, 0x7C8, bench.text("hi"), 2)
    wide = bench.words(string_class, 0x7D0, bench.put("hé".encode("utf-16-le")), 2)
    integer = bench.words(integer_class, 0, -4)
    array = bench.words(array_class, 2, bench.words(integer, string))
    runtime = Runtime(bench.memory, imports.data, imports.allocate)
    assert runtime.text(string) == "hi"
    assert runtime.text(wide) == "hé"
    assert runtime.find(integer).value() == -4
    assert [runtime.find(item).value() for item in runtime.find(array).items] == [-4, "hi"]
    assert runtime.find(empty).items == []
    assert runtime.find(string) is runtime.find(string)
    assert isinstance(runtime.find(string), NSString)
    bench.memory.close()
