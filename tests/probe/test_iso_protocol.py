from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scanner.backends.drill_deaths import _GARBAGE as GARBAGE
from scanner.probe.protocol import Begin, Bye, Frames, Message, Result, encode

MESSAGES = st.one_of(
    st.builds(Begin, index=st.integers(0, 10**6), said=st.integers(0, 10**9)),
    st.builds(
        Result,
        index=st.integers(0, 10**6),
        status=st.just("wrong"),
        reason=st.text(),
        detail=st.dictionaries(st.text(), st.text()),
        warnings=st.tuples(st.text()),
        seconds=st.floats(0, 10),
    ),
    st.builds(Bye, grown=st.booleans()),
)
# Anything but a record separator, which would cut a message that follows without its own.
NOISE = st.binary(max_size=40).map(lambda data: data.replace(b"\x1e", b"").replace(b"{", b""))


def fed(data: bytes, size: int) -> tuple[list[object], int]:
    frames = Frames(Message)
    messages: list[object] = []
    for start in range(0, len(data), size):
        messages += frames.feed(data[start : start + size])
    return messages, frames.noise


@given(st.lists(st.tuples(NOISE, MESSAGES)), st.integers(1, 64))
def test_messages_survive_noise_between_them_and_any_cutting(
    stream: list[tuple[bytes, object]], size: int
) -> None:
    data = b"".join(noise + encode(message) for noise, message in stream)  # type: ignore[arg-type]
    messages, noise = fed(data, size)
    assert messages == [message for _, message in stream]
    assert noise == sum(len(noise) for noise, _ in stream)


def test_garbage_of_the_drill_costs_no_message() -> None:
    begin, bye = Begin(index=1, said=2), Bye()
    messages, noise = fed(encode(begin) + GARBAGE + encode(bye), 7)
    assert messages == [begin, bye]
    assert noise > 0


def test_a_torn_message_is_dropped_and_the_next_one_read() -> None:
    torn = encode(Begin(index=1, said=2))[:-9]
    messages, noise = fed(torn + encode(Bye()), 5)
    assert messages == [Bye()]
    assert noise == len(torn) - 1


def test_json_of_another_kind_is_noise() -> None:
    messages, noise = fed(b'\x1e{"type":"begin","index":"one"}\n\x1e[]\n', 100)
    assert messages == []
    assert noise > 0


def test_an_unfinished_message_is_awaited() -> None:
    frames = Frames(Message)
    data = encode(Bye())
    assert frames.feed(data[:4]) == []
    assert frames.feed(data[4:]) == [Bye()]
    assert frames.noise == 0
