import pytest

from opdb.operands import main_operand


@pytest.mark.parametrize(
    ("names", "place"),
    [
        ([], None),
        (["self"], 0),
        (["condition", "self", "other"], 1),
        (["sorted_sequence", "self"], 1),
        (["weight", "indices"], 0),
        (["grad_output", "input"], 1),
        (["tensors[0]", "tensors[1]"], 0),
        (["input", "self"], 1),
    ],
)
def test_the_operand_that_a_call_is_filed_under(names: list[str], place: int | None) -> None:
    assert main_operand(names) == place
