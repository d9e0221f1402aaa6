import pytest
from hypothesis import given
from hypothesis import strategies as st

from opdb.intervals import decode, encode, positions

RELEASES = ("1.12.1", "1.13.0", "2.0.0", "2.0.1", "2.1.0", "2.10.0")
WHERE = positions(RELEASES)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (["1.12.1"], "1.12.1"),
        (["2.10.0"], "2.10.0.."),
        (RELEASES, "1.12.1.."),
        (["1.12.1", "1.13.0"], "1.12.1..1.13.0"),
        (["2.0.1", "1.12.1", "2.0.0"], "1.12.1,2.0.0..2.0.1"),
        (["1.13.0", "2.1.0", "2.10.0"], "1.13.0,2.1.0.."),
    ],
)
def test_a_set_has_one_text(members, text):
    assert encode(members, RELEASES) == text


@pytest.mark.parametrize(
    ("text", "ranges"),
    [("2.0.0", [(2, 2)]), ("2.0.0..", [(2, 5)]), ("1.12.1..1.13.0,2.1.0", [(0, 1), (4, 4)])],
)
def test_a_text_is_ranges_of_places(text, ranges):
    assert decode(text, WHERE) == ranges


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2.0",
        "..2.0.0",
        "2.0.0..9.9.9",
        "2.0.1..2.0.0",
        "2.0.0,1.12.1",
        "1.12.1,1.13.0",  # not maximal: it is 1.12.1..1.13.0
        "1.12.1..2.0.1,2.0.0",
        "1.12.1, 2.0.0",
        "2.0.0...2.1.0",
    ],
)
def test_a_malformed_text_is_an_error(text):
    with pytest.raises(ValueError, match=r"release|ascending"):
        decode(text, WHERE)


def test_an_unknown_release_is_not_encoded():
    with pytest.raises(KeyError):
        encode(["3.0.0"], RELEASES)


@given(st.sets(st.sampled_from(RELEASES), min_size=1))
def test_decoding_reverses_encoding(members):
    ranges = decode(encode(members, RELEASES), WHERE)
    assert {RELEASES[at] for low, high in ranges for at in range(low, high + 1)} == members


@given(
    st.sets(st.sampled_from(RELEASES), min_size=1), st.sets(st.sampled_from(RELEASES), min_size=1)
)
def test_equal_texts_are_equal_sets(one, other):
    assert (encode(one, RELEASES) == encode(other, RELEASES)) == (one == other)
