"""How a class or factory is called."""

from __future__ import annotations

import pytest

from scanner.errors import LocateError
from scanner.locate.interface import NeedsValues
from tests.locate.conftest import Project, note

NET = """
class Net(nn.Module):
    def __init__(self, {args}):
        super().__init__()
        self.given = ({names},)
        self.fc = nn.Linear(8, 4)
    def forward(self, x):
        return self.fc(x)
"""


def net(args: str) -> str:
    names = ", ".join(arg.split("=")[0].split(":")[0].strip() for arg in args.split(","))
    return NET.format(args=args, names=names)


def given(project: Project, argument: str = "model.py:Net") -> tuple[object, ...]:
    found: tuple[object, ...] = project.build(argument).model.given
    return found


def test_without_arguments(project: Project) -> None:
    project.torch_file(net("width=3"))
    assert given(project) == (3,)
    assert not [text for text in project.build().notes if "built" in text]


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("Net(3, 10)", (3, 10)),
        ("Net(a=3, b=10)", (3, 10)),
        ("Net(3, b=2 * 5).to('mps')", (3, 10)),
        ("Net(WIDTH, len('ab') + 8)", (3, 10)),
        ("Net(*[3, 10])", (3, 10)),
        ("Net(**{'a': 3, 'b': 10})", (3, 10)),
        ("Net(width, classes)", (3, 10)),
        ("torch.compile(Net(args.width, args.n_classes))", (3, 10)),
        ("Net(cfg.width, cfg.classes)", (3, 10)),
    ],
)
def test_as_the_file_calls_it(project: Project, call: str, values: tuple[int, int]) -> None:
    project.torch_file(
        "import argparse, dataclasses\nWIDTH = 3\n"
        + "@dataclasses.dataclass\nclass Config:\n    width: int = 3\n    classes: int = 10\n"
        + net("a, b")
        + "def main():\n"
        + "    parser = argparse.ArgumentParser()\n"
        + "    parser.add_argument('--width', type=int, default=3)\n"
        + "    parser.add_argument('-c', '--n-classes', type=int, default=10)\n"
        + "    args = parser.parse_args()\n"
        + "    width, classes = WIDTH, 10\n"
        + "    cfg = Config()\n"
        + f"    model = {call}\n"
    )
    subject = project.build("model.py:Net")
    assert subject.model.given == values
    assert note(subject, "Net built as at model.py:").startswith("Net built as at model.py:25: ")


def test_the_file_s_call_comes_before_the_defaults(project: Project) -> None:
    project.torch_file(net("a=1") + "def main():\n    return Net(5)\n")
    assert given(project) == (5,)


def test_arguments_through_a_function_s_parameters(project: Project) -> None:
    project.torch_file(
        net("a, b")
        + "def run(width, depth=2):\n    model = Net(width, depth)\nrun_it = lambda: 0\n"
        "def main():\n    run(width=7)\n"
    )
    assert given(project) == (7, 2)


def test_calls_that_need_data_are_passed_over(project: Project) -> None:
    project.torch_file(
        net("a=1") + "def main(data):\n    m = Net(len(data))\n    n = Net(data.size)\n    Net(4)\n"
    )
    assert given(project) == (4,)


def test_other_calls_are_listed(project: Project) -> None:
    project.torch_file(net("a") + "def f():\n    return Net(1)\ndef g():\n    return Net(2)\n")
    subject = project.build("model.py:Net")
    assert subject.model.given == (1,)
    assert note(subject, "Net built").endswith("Net(1); called differently at line 14")


CONFIG = "import dataclasses\n@dataclasses.dataclass\nclass {name}:\n    width: int = 6\n"


@pytest.mark.parametrize(
    ("args", "name"),
    [
        ("cfg", "Config"),
        ("config", "Anything"),
        ("settings: Anything", "Anything"),
        ("settings: 'Anything'", "Anything"),
    ],
)
def test_config_dataclass(project: Project, args: str, name: str) -> None:
    project.torch_file(CONFIG.format(name=name) + net(args))
    subject = project.build("model.py:Net")
    assert subject.model.given[0].width == 6
    assert note(subject, "Net built") == f"Net built from {name}() with its defaults"


def test_the_config_named_after_the_class_is_taken(project: Project) -> None:
    project.torch_file(
        CONFIG.format(name="TrainConfig")
        + CONFIG.format(name="NetConfig").replace("6", "7")
        + net("config")
    )
    assert project.build("model.py:Net").model.given[0].width == 7


def test_several_configs_are_listed_not_guessed(project: Project) -> None:
    project.torch_file(
        CONFIG.format(name="AConfig") + CONFIG.format(name="BConfig") + net("config")
    )
    with pytest.raises(LocateError) as caught:
        project.build("model.py:Net")
    assert caught.value.message == (
        "model.py: the constructor of Net needs config, and nothing in the file says which values "
        "to give; config may be any of AConfig, BConfig"
    )


def test_a_config_without_defaults_does_not_help(project: Project) -> None:
    project.torch_file(CONFIG.format(name="Config").replace(" = 6", "") + net("cfg"))
    with pytest.raises(LocateError, match="needs cfg"):
        project.build("model.py:Net")


def test_an_imported_config(project: Project) -> None:
    project.torch_file(CONFIG.format(name="NetConfig"), name="settings.py")
    project.torch_file("from settings import NetConfig\n" + net("config"))
    assert given(project)[0].width == 6  # type: ignore[attr-defined]


def test_missing_arguments_are_named_with_a_remedy(project: Project) -> None:
    project.torch_file(net("width, depth, bias=True"))
    with pytest.raises(LocateError) as caught:
        project.build("model.py:Net")
    assert caught.value.message == (
        "model.py: the constructor of Net needs width, depth, and nothing in the file says which "
        "values to give"
    )
    assert caught.value.remedy.count("\n") == 4
    assert "def opscan_model():" in caught.value.remedy


def test_a_constructor_that_raises(project: Project) -> None:
    project.torch_file("""
        class Net(nn.Module):
            def __init__(self, heads=3):
                super().__init__()
                assert 8 % heads == 0, "width must divide"
            def forward(self, x): return x
    """)
    with pytest.raises(LocateError) as caught:
        project.build()
    assert caught.value.message == (
        "building Net() failed: model.py:7: AssertionError: width must divide\n"
        '    assert 8 % heads == 0, "width must divide"'
    )


def test_a_constructor_that_reads_values(project: Project) -> None:
    project.torch_file("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rates = [r.item() for r in torch.linspace(0, 0.1, 3)]
                self.fc = nn.Linear(2, 2)
            def forward(self, x): return self.fc(x)
    """)
    with pytest.raises(NeedsValues, match=r"model\.py:7"):
        project.build()
    assert project.build_real().model.rates[0] == 0


def test_a_constructor_that_exits(project: Project) -> None:
    project.torch_file("""
        class Net(nn.Module):
            def __init__(self):
                raise SystemExit(1)
            def forward(self, x): return x
    """)
    with pytest.raises(LocateError, match="SystemExit: 1"):
        project.build()


def test_a_factory_with_a_config(project: Project) -> None:
    project.torch_file(
        CONFIG.format(name="Config")
        + net("cfg")
        + "def build_model(cfg: Config) -> nn.Module:\n    return Net(cfg)\n"
    )
    subject = project.build()
    assert subject.model.given[0].width == 6
    assert note(subject, "build_model built") == "build_model built from Config() with its defaults"


def test_a_factory_that_returns_a_model_and_an_optimizer(project: Project) -> None:
    project.torch_file(
        net("a=1")
        + "def build_model():\n    m = Net()\n"
        + "    return m, torch.optim.SGD(m.parameters(), lr=0.5)\n"
    )
    subject = project.build()
    assert type(subject.model).__name__ == "Net"
    assert subject.optimizer.defaults["lr"] == 0.5


def test_a_factory_that_returns_no_model(project: Project) -> None:
    project.torch_file("def build_model(): return {'a': 1}\n")
    with pytest.raises(LocateError, match=r"build_model\(\) returned dict, no nn.Module"):
        project.build()
