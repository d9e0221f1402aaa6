import pytest

from opdb.build.schema import parse


@pytest.mark.parametrize(
    ("text", "name", "variant", "view"),
    [
        ("abs(Tensor self) -> Tensor", "abs", "functional", False),
        ("abs_(Tensor(a!) self) -> Tensor(a!)", "abs_", "inplace", False),
        ("abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "abs.out", "out", False),
        ("t(Tensor(a) self) -> Tensor(a)", "t", "functional", True),
        (
            "split.Tensor(Tensor(a -> *) self, SymInt n, int dim=0) -> Tensor(a)[]",
            "split.Tensor",
            "functional",
            True,
        ),
        ("t_(Tensor(a!) self) -> Tensor(a!)", "t_", "inplace", False),
        (
            "__iand__.Scalar(Tensor(a!) self, Scalar o) -> Tensor(a!)",
            "__iand__.Scalar",
            "inplace",
            False,
        ),
        ("__and__.Scalar(Tensor self, Scalar o) -> Tensor", "__and__.Scalar", "functional", False),
        ("bn(Tensor x, Tensor(a!) mean) -> (Tensor, Tensor)", "bn", "mutable", False),
        ("_foreach_abs_(Tensor(a!)[] self) -> ()", "_foreach_abs_", "inplace", False),
        (
            "sort.values(Tensor self, *, Tensor(a!) v, Tensor(b!) i) -> (Tensor(a!), Tensor(b!))",
            "sort.values",
            "out",
            False,
        ),
        ("numel(Tensor self) -> int", "numel", "functional", False),
    ],
)
def test_what_a_schema_says_about_memory(text, name, variant, view):
    schema = parse(text)
    assert (schema.name, schema.variant, schema.view) == (name, variant, view)


@pytest.mark.parametrize(
    "group",
    [
        [
            "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
            "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
            "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
        ],
        [
            "__or__.Tensor(Tensor self, Tensor other) -> Tensor",
            "__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        ],
        [
            "pad(Tensor self, int[2] pad=[0, 0], str mode='a') -> Tensor",
            "pad.out(Tensor self, int[2] pad=[0, 0], str mode='a', *, Tensor(a!) o) -> Tensor(a!)",
        ],
    ],
)
def test_variants_of_one_operator_have_one_signature(group):
    assert len({parse(text).signature for text in group}) == 1


def test_overloads_with_other_arguments_have_other_signatures():
    one = parse("add.Tensor(Tensor self, Tensor other) -> Tensor")
    assert one.signature != parse("add.Scalar(Tensor self, Scalar other) -> Tensor").signature
    assert one.signature != parse("sub.Tensor(Tensor self, Tensor other) -> Tensor").signature
