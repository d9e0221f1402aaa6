"""Which calls are worth a line: those that lead to what is missing or runs on the CPU."""

from opdb.build.paths import leading

OPS = {
    ("inverse", "explicit", "-", "-"): {"1", "2"},
    ("eigh", "implicit", "-", "-"): {"1", "2"},
    ("_eigh", "none", "-", "cpu"): {"1", "2"},
    ("abs", "none", "-", "cpu"): {"1", "2"},
    ("_mask", "none", "-", "-"): {"1", "2"},
}
MPS = {("abs", "MPS", "kernel"): {"1", "2"}, ("_eigh", "MPS", "kernel"): {"2"}}
PATHS = {
    ("eigh", "_eigh", "always"): {"1", "2"},
    ("eigh", "abs", "maybe"): {"1"},
    ("inverse", "_mask", "maybe"): {"1"},
    ("inverse", "abs", "always"): {"1"},
    ("inverse", "eigh", "maybe"): {"1", "2"},
}
LEADING = {
    ("eigh", "_eigh", "always"): {"1", "2"},
    ("inverse", "eigh", "maybe"): {"1", "2"},
}


def test_calls_lead_through_others_and_are_kept_for_every_release_that_makes_them():
    assert leading(PATHS, OPS, MPS, ["1", "2"]) == LEADING


def test_nothing_leads_where_nothing_is_missing():
    assert leading(PATHS, OPS, MPS, ["2"]) == {}


def test_a_registered_fallback_is_an_end():
    falls = MPS | {("_eigh", "MPS", "fallback"): {"1"}}
    assert leading(PATHS, OPS, falls, ["1"]) == LEADING


def test_a_kernel_of_its_own_is_not_followed():
    kernel = MPS | {("inverse", "MPS", "kernel"): {"1", "2"}}
    assert leading(PATHS, OPS, kernel, ["1"]) == {("eigh", "_eigh", "always"): {"1", "2"}}


def test_what_even_the_cpu_cannot_do_is_called_on_other_tensors():
    assert ("inverse", "_mask", "maybe") not in leading(PATHS, OPS, MPS, ["1"])
