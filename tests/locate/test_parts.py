"""Classes that are parts of other models are not scanned alone."""

from __future__ import annotations

import pytest

from tests.locate.conftest import Project

CLASS = """
class {name}(nn.Module):
    def __init__(self{args}):
        super().__init__()
        {body}
    def forward(self, x):
        return x
"""


def cls(name: str, body: str = "pass", args: str = "") -> str:
    return CLASS.format(name=name, body=body, args=args)


def names(project: Project) -> list[str]:
    return [candidate.name for candidate in project.find().candidates]


@pytest.mark.parametrize(
    "body",
    [
        "self.block = Block()",
        "self.blocks = nn.ModuleList([Block() for _ in range(3)])",
        "self.blocks = nn.Sequential(*(Block() for _ in range(3)))",
        "self.make = lambda: Block()",
        "self.kind = Block",
    ],
)
def test_a_class_used_by_another_is_a_part(project: Project, body: str) -> None:
    project.torch_file(cls("Block") + cls("Net", body))
    found = project.find()
    assert [c.name for c in found.candidates] == ["Net"]
    assert found.notes == (
        "Block: used by Net, not scanned alone; name one to do so (model.py:Block)",
    )


def test_parts_in_any_order_and_depth(project: Project) -> None:
    project.torch_file(cls("Net", "Block()") + cls("Block", "Attention()") + cls("Attention"))
    assert names(project) == ["Net"]


def test_parts_in_another_file(project: Project) -> None:
    project.torch_file(cls("Middle", "Inner()") + cls("Inner"), name="lib.py")
    project.torch_file("from lib import Middle, Inner\n" + cls("Net", "Middle()"))
    assert names(project) == ["Net"]


def test_annotated_arguments_are_parts(project: Project) -> None:
    project.torch_file(cls("Encoder") + cls("Net", "self.e = e", ", e: Encoder"))
    assert names(project) == ["Net"]


def test_what_a_script_passes_in_is_a_part(project: Project) -> None:
    project.torch_file(
        cls("Encoder")
        + cls("Decoder")
        + cls("Net", "self.e, self.d = e, d", ", e, d")
        + "def main():\n    enc = Encoder()\n    net = Net(enc, d=Decoder())\n"
    )
    assert names(project) == ["Net"]


def test_a_class_passed_by_reference_is_a_part(project: Project) -> None:
    project.torch_file(
        cls("Block")
        + cls("ResNet", "self.b = block()", ", block")
        + "def resnet18():\n    return ResNet(Block)\n"
    )
    assert names(project) == ["ResNet"]


def test_bases_of_other_models_are_left_out(project: Project) -> None:
    project.torch_file(cls("Base") + cls("Net").replace("nn.Module", "Base"))
    assert names(project) == ["Net"]


def test_use_in_a_function_makes_no_part(project: Project) -> None:
    project.torch_file(cls("A") + cls("B") + "def main():\n    a, b = A(), B()\n    a(b(1))\n")
    assert names(project) == ["A", "B"]


def test_classes_that_use_each_other_are_not_both_lost(project: Project) -> None:
    project.torch_file(cls("A", "self.b = B") + cls("B", "self.a = A"))
    assert names(project) == ["A", "B"]


def test_a_class_that_names_itself_is_no_part(project: Project) -> None:
    project.torch_file(cls("Tree", "self.children_ = [Tree() for _ in ()]"))
    assert names(project) == ["Tree"]


def test_what_a_factory_passes_in_is_covered_with_its_model(project: Project) -> None:
    project.torch_file(
        cls("Encoder")
        + cls("Net", "self.e = e", ", e")
        + "def build_model():\n    return Net(Encoder())\n"
    )
    assert names(project) == ["build_model()"]
