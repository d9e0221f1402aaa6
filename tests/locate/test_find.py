"""Which models a file offers, in which order, and how one is named."""

from __future__ import annotations

import pytest

from scanner.errors import LocateError
from scanner.locate.interface import Found
from tests.locate.conftest import Project

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
    def forward(self, x):
        return self.fc(x)
"""
HOOK = "def opscan_model():\n    return nn.Linear(3, 4), torch.empty(2, 3)\n"


def offered(found: Found) -> list[tuple[str, str, str]]:
    return [(c.name, c.entry, c.how) for c in found.candidates]


def test_a_hook_is_the_only_candidate(project: Project) -> None:
    project.torch_file(NET + "model = Net()\ndef build_model(): return Net()\n" + HOOK)
    found = project.find()
    assert offered(found) == [("opscan_model()", "opscan_model", "hook")]
    assert found.notes == ("opscan_model() says what to scan; on request: model, Net",)


def test_an_entry_of_the_configuration_is_the_only_candidate(project: Project) -> None:
    project.torch_file(NET + NET.replace("Net", "Other"))
    assert offered(project.find(entry="Other")) == [("Other", "Other", "config")]


def test_a_hook_comes_before_the_configuration(project: Project) -> None:
    project.torch_file(NET + HOOK)
    found = project.find(entry="Net")
    assert offered(found) == [("opscan_model()", "opscan_model", "hook")]
    assert found.notes[0] == "the entry Net is not used: opscan_model() says what to scan"


def test_a_name_comes_before_a_hook(project: Project) -> None:
    project.torch_file(NET + HOOK)
    assert offered(project.find("model.py:Net")) == [("Net", "Net", "class")]


def test_objects_then_factories_then_classes(project: Project) -> None:
    project.torch_file(
        NET
        + NET.replace("Net", "Second")
        + NET.replace("Net", "Third")
        + "def build_model():\n    return Second()\nmodel = Net()\n"
    )
    found = project.find()
    assert offered(found) == [
        ("model", "model", "global"),
        ("build_model()", "build_model", "factory"),
        ("Third", "Third", "class"),
    ]
    assert found.notes == (
        "Net: used by a module-level object, not scanned alone; name one to do so (model.py:Net)",
        "Second: used by build_model(), not scanned alone; name one to do so (model.py:Second)",
    )


def test_three_classes_are_all_offered(project: Project) -> None:
    project.torch_file(NET + NET.replace("Net", "B") + NET.replace("Net", "A"))
    found = project.find()
    assert [c.name for c in found.candidates] == ["Net", "B", "A"]
    assert found.notes == ()


def test_objects_with_two_names_and_parts_of_objects(project: Project) -> None:
    project.torch_file("""
        encoder = nn.Linear(3, 4)
        model = nn.Sequential(encoder, nn.ReLU())
        net = model
        act = nn.ReLU()
        criterion = nn.MSELoss()
        _hidden = nn.Linear(1, 1)
    """)
    assert [c.name for c in project.find().candidates] == ["model"]


def test_wrapped_objects_are_one_model(project: Project) -> None:
    project.torch_file("""
        net = nn.Linear(3, 4)
        parallel = nn.DataParallel(net)
        fast = torch.compile(net)
    """)
    assert [c.name for c in project.find().candidates] == ["net"]


def test_imported_classes_are_not_offered(project: Project) -> None:
    project.torch_file(NET, name="parts.py")
    project.torch_file("from parts import Net\n" + NET.replace("Net", "Own"))
    assert [c.name for c in project.find().candidates] == ["Own"]


def test_imported_classes_that_the_file_builds_are_offered_for_want_of_others(
    project: Project,
) -> None:
    project.torch_file(NET, name="net.py")
    project.torch_file("""
        from net import Net
        def main():
            model = Net()
            model.train()
    """)
    assert offered(project.find()) == [("Net", "Net", "class")]


def test_models_of_torch_s_own_classes_inside_functions(project: Project) -> None:
    project.torch_file("""
        def main():
            width = 16
            act = nn.ReLU()
            net = nn.Sequential(nn.Linear(3, width), act, nn.Linear(width, 1)).to("cpu")
            other = nn.Linear(unknown(), 2)
            loss = nn.MSELoss()
    """)
    found = project.find()
    assert offered(found) == [
        ("main.net", "main.net", "class"),
        ("main.other", "main.other", "class"),
    ]
    subject = project.build("model.py:main.net")
    assert tuple(subject.model[0].weight.shape) == (16, 3)
    with pytest.raises(LocateError, match=r"main\.other cannot be built without running"):
        project.build("model.py:main.other")


def test_losses_are_offered_for_want_of_models(project: Project) -> None:
    loss = NET.replace("Net", "MyLoss")
    project.torch_file(NET + loss, name="both.py")
    project.torch_file(loss, name="alone.py")
    assert [c.name for c in project.find("both.py").candidates] == ["Net"]
    assert [c.name for c in project.find("alone.py").candidates] == ["MyLoss"]


def test_abstract_bases_and_modules_without_forward_are_no_models(project: Project) -> None:
    project.torch_file(
        """
        import abc
        class Base(nn.Module): pass
        class Abstract(nn.Module, abc.ABC):
            @abc.abstractmethod
            def forward(self, x): ...
        """
        + "\n"
    )
    with pytest.raises(LocateError, match="no model found"):
        project.find()


@pytest.mark.parametrize(
    "definition",
    [
        "def build_model(): return Net()",
        "def create_model(n=3): return Net()",
        "def tiny_model(): return Net()",
        "def anything() -> nn.Module: return Net()",
        "def anything() -> Net: return Net()",
        "def anything() -> 'Net': return Net()",
    ],
)
def test_factories(project: Project, definition: str) -> None:
    project.torch_file(NET + definition)
    (candidate,) = project.find().candidates
    assert candidate.how == "factory"
    assert candidate.name == f"{definition.split()[1].split('(')[0]}()"


@pytest.mark.parametrize(
    "definition",
    [
        "def train_model(): raise AssertionError",
        "def evaluate_model(): raise AssertionError",
        "def _build_model(): raise AssertionError",
        "def make(): return Net()",
    ],
)
def test_no_factories(project: Project, definition: str) -> None:
    project.torch_file(NET + definition)
    assert [c.name for c in project.find().candidates] == ["Net"]


def test_factories_that_need_arguments_are_mentioned(project: Project) -> None:
    project.torch_file(NET + "def build_model(size): return Net()\n")
    found = project.find()
    assert [c.name for c in found.candidates] == ["Net"]
    assert found.notes == (
        "build_model is not called: it needs arguments that the file does not settle",
    )


def test_a_factory_that_needs_arguments_is_better_than_nothing(project: Project) -> None:
    project.torch_file("def build_model(size): return nn.Linear(size, 1)\n")
    (candidate,) = project.find().candidates
    with pytest.raises(LocateError, match="the factory of build_model needs size"):
        candidate.build()


def test_a_factory_that_chooses_hides_none_of_its_choices(project: Project) -> None:
    project.torch_file(
        NET
        + NET.replace("Net", "Big")
        + "def build_model(kind='net'):\n    return Net() if kind == 'net' else Big()\n"
    )
    assert [c.name for c in project.find().candidates] == ["build_model()", "Net", "Big"]


def test_imported_factories_are_not_called(project: Project) -> None:
    project.torch_file("def build_model(): raise AssertionError\n", name="lib.py")
    project.torch_file("from lib import build_model\n" + NET)
    assert [c.name for c in project.find().candidates] == ["Net"]


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("Net", "class"),
        ("net", "global"),
        ("make", "factory"),
        ("make()", "factory"),
        ("opscan_model", "hook"),
        ("Outer.Inner", "class"),
        ("step", "global"),
        ("criterion", "global"),
    ],
)
def test_names(project: Project, name: str, how: str) -> None:
    project.torch_file(
        NET
        + HOOK
        + "net = Net()\ndef make(): return Net()\ndef step(x, y): return x @ y\n"
        + "class Outer:\n    class Inner(Net): pass\n"
        + "criterion = nn.MSELoss()\n"
    )
    (candidate,) = project.find(f"model.py:{name}").candidates
    assert candidate.how == how


def test_a_part_can_be_named(project: Project) -> None:
    project.torch_file(NET + NET.replace("Net", "Big").replace("nn.Linear(8, 4)", "Net()"))
    assert [c.name for c in project.find().candidates] == ["Big"]
    assert offered(project.find("model.py:Net")) == [("Net", "Net", "class")]


def test_unknown_names_list_what_is_there(project: Project) -> None:
    project.torch_file(NET + "model = Net()\ndef build_model(): return Net()\n" + HOOK)
    with pytest.raises(LocateError) as caught:
        project.find("model.py:Nte")
    assert caught.value.message == "model.py has no Nte; did you mean Net?"
    assert caught.value.remedy == "models there: opscan_model, model, build_model, Net"


def test_a_name_that_is_no_model(project: Project) -> None:
    project.torch_file(NET + "width = 3\n")
    with pytest.raises(LocateError) as caught:
        project.find("model.py:width")
    assert caught.value.message == (
        "model.py: width is neither a model nor a function (it is an int)"
    )
    assert caught.value.remedy == "models there: Net"


def test_a_file_without_models(project: Project) -> None:
    project.torch_file("x = torch.zeros(3)\n")
    with pytest.raises(LocateError) as caught:
        project.find()
    assert caught.value.message.startswith("model.py: no model found; looked for opscan_model()")
    assert "def opscan_model():" in caught.value.remedy


def test_modules_of_a_package_are_its_own(project: Project) -> None:
    project.torch_file(NET, name="pkg/net.py")
    project.write("pkg/__init__.py", "from .net import Net\n")
    assert [c.name for c in project.find("pkg.net").candidates] == ["Net"]
    assert [c.name for c in project.find("pkg").candidates] == ["Net"]


def test_nothing_is_built_before_it_is_asked_for(project: Project) -> None:
    project.torch_file("""
        class Net(nn.Module):
            def __init__(self):
                raise AssertionError("built")
            def forward(self, x):
                return x
        def build_model():
            raise AssertionError("called")
    """)
    found = project.find()
    assert [c.name for c in found.candidates] == ["build_model()", "Net"]
    with pytest.raises(LocateError, match=r"building build_model\(\) failed: model.py:10"):
        found.candidates[0].build()
