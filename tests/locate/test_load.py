"""Running a user's file as a module, and what can go wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scanner.errors import LocateError
from scanner.locate.interface import Source
from scanner.locate.load import Loaded, load
from tests.locate.conftest import Project


def loaded(project: Project, name: str = "model.py") -> Loaded:
    return load(Source(argument=name, path=project.root / name), project.root)


def failure(project: Project, text: str, name: str = "model.py") -> LocateError:
    project.write(name, text)
    with pytest.raises(LocateError) as caught:
        loaded(project, name)
    return caught.value


def test_file_runs_as_a_module(project: Project) -> None:
    project.write("model.py", "import sys\nname = __name__\nargv = sys.argv\nfirst = sys.path[0]\n")
    space = vars(loaded(project).module)
    assert space["name"] == "model"
    assert space["argv"] == [str(project.root / "model.py")]
    assert space["first"] == str(project.root)


def test_main_guard_does_not_fire(project: Project) -> None:
    project.write("model.py", "ran = []\nif __name__ == '__main__':\n    ran.append(1)\n")
    assert loaded(project).module.ran == []


def test_siblings_are_imported_from_the_file_s_directory(project: Project) -> None:
    project.write("src/helper.py", "value = 3\n")
    project.write("src/train.py", "from helper import value\n")
    assert loaded(project, "src/train.py").module.value == 3


def test_packages_of_the_working_directory_are_found_last(project: Project) -> None:
    project.write("shared/__init__.py", "value = 4\n")
    project.write("src/train.py", "from shared import value\n")
    assert loaded(project, "src/train.py").module.value == 4


def test_a_sibling_that_imports_the_file_gets_the_same_module(project: Project) -> None:
    project.write("net.py", "import train\n")
    project.write("train.py", "things = []\nimport net\n")
    module = loaded(project, "train.py").module
    assert module.net.train is module


@pytest.mark.parametrize("name", ["random.py", "pytest.py", "my-model.py"])
def test_a_name_that_belongs_to_another_module_is_not_taken(project: Project, name: str) -> None:
    before = sys.modules.get(name.removesuffix(".py"))
    project.write(name, "own = True\n")
    module = loaded(project, name).module
    assert module.own
    assert module.__name__.startswith("opscan_user_")
    assert sys.modules.get(name.removesuffix(".py")) is before


def test_loading_again_runs_again(project: Project) -> None:
    project.write("model.py", "things = []\n")
    first = loaded(project).module
    assert loaded(project).module.things is not first.things


def test_relative_imports_work_inside_a_package(project: Project) -> None:
    project.write("pkg/__init__.py", "")
    project.write("pkg/layers.py", "value = 5\n")
    project.write("pkg/net.py", "from .layers import value\n")
    result = loaded(project, "pkg/net.py")
    assert result.module.value == 5
    assert result.module.__name__ == "pkg.net"
    assert result.display == "pkg/net.py"


def test_dotted_module(project: Project) -> None:
    project.write("pkg/__init__.py", "")
    project.write("pkg/net.py", "class Net: pass\n")
    result = load(Source(argument="pkg.net", module="pkg.net"), project.root)
    assert result.path == project.root / "pkg" / "net.py"
    assert [node.name for node in result.tree.body] == ["Net"]  # type: ignore[attr-defined]


def test_dataclasses_and_annotations_see_their_module(project: Project) -> None:
    text = (
        "from __future__ import annotations\nimport dataclasses, typing\n"
        "@dataclasses.dataclass\nclass C:\n    n: int = 3\n"
        "hints = typing.get_type_hints(C)\n"
    )
    project.write("model.py", text)
    assert loaded(project).module.hints == {"n": int}


def test_syntax_error(project: Project) -> None:
    error = failure(project, "x = 1\ndef f(:\n    pass\n")
    assert error.message == "model.py:2: syntax error: invalid syntax\n    def f(:"
    assert "mend the file" in error.remedy


def test_syntax_error_in_an_imported_file(project: Project) -> None:
    project.write("helper.py", "def f(:\n")
    error = failure(project, "import helper\n")
    assert error.message.startswith("helper.py:1: syntax error")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x = 1\x00\n", b"# coding: nonsense\n"])
def test_no_text(project: Project, content: bytes) -> None:
    (project.root / "model.py").write_bytes(content)
    with pytest.raises(LocateError) as caught:
        loaded(project)
    assert caught.value.message.startswith("model.py")
    assert caught.value.remedy


def test_missing_package(project: Project) -> None:
    error = failure(project, "import os\nimport a_package_nobody_has.sub\n")
    assert error.message == "model.py:2: the package a_package_nobody_has is not installed here"
    assert "environment that trains the model" in error.remedy
    assert "`pip install a_package_nobody_has`" in error.remedy


def test_missing_package_of_another_name(project: Project) -> None:
    error = failure(project, "import cv2\n")
    assert "`pip install opencv-python`" in error.remedy


def test_missing_submodule_of_an_installed_package(project: Project) -> None:
    error = failure(project, "import json.nothing\n")
    assert error.message == "model.py:1: the module json.nothing does not exist in the package json"


def test_missing_name(project: Project) -> None:
    error = failure(project, "from json import nothing\n")
    assert "model.py:1: ImportError: cannot import name 'nothing'" in error.message
    assert "environment that trains the model" in error.remedy


def test_relative_import_outside_a_package(project: Project) -> None:
    error = failure(project, "from .layers import Block\n")
    assert "ImportError" in error.message
    assert "package.module" in error.remedy


def test_missing_module_argument(project: Project) -> None:
    with pytest.raises(LocateError) as caught:
        load(Source(argument="no_such.thing", module="no_such.thing"), project.root)
    assert caught.value.message == "no_such.thing: no module named no_such"


def test_exception_at_import(project: Project) -> None:
    error = failure(project, "def f(n):\n    return 1 / n\n\nf(0)\n")
    assert error.message == (
        "model.py cannot be imported: model.py:2: ZeroDivisionError: division by zero\n"
        "    return 1 / n"
    )
    assert "__main__" in error.remedy


def test_exception_inside_a_library_is_placed_in_the_user_s_file(project: Project) -> None:
    error = failure(project, "import json\n\njson.loads('{')\n")
    assert "model.py:3: JSONDecodeError" in error.message


@pytest.mark.parametrize(
    ("text", "code"),
    [("import sys\nsys.exit(3)\n", "3"), ("raise SystemExit\n", "None"), ("exit()\n", "None")],
)
def test_exit(project: Project, text: str, code: str) -> None:
    error = failure(project, text)
    assert f"the file exits while it is imported (exit code {code})" in error.message
    assert error.message.startswith("model.py:")


def test_required_command_line_arguments(project: Project) -> None:
    error = failure(
        project,
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\np.parse_args()\n",
    )
    assert error.message.startswith("model.py:4: the file exits while it is imported (exit code 2)")


def test_reading_standard_input(project: Project) -> None:
    project.write("model.py", "name = input()\n")
    code = (
        "import sys, pathlib; from scanner.locate.load import load;"
        "from scanner.locate.interface import Source; from scanner.errors import LocateError\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "try: load(Source(argument='model.py', path=root / 'model.py'), root)\n"
        "except LocateError as error: print(error.message)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(project.root)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert run.stdout == "model.py:1: the file reads standard input while it is imported\n"


def test_interruption_passes(project: Project) -> None:
    project.write("model.py", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        loaded(project)


def test_a_file_that_fails_after_it_built_a_model_is_used_as_far_as_it_ran(
    project: Project,
) -> None:
    project.torch_file("""
        model = nn.Linear(3, 4)
        open("no such file")
        later = 1
    """)
    result = loaded(project)
    assert not hasattr(result.module, "later")
    (text,) = result.notes
    assert text.startswith("the file was used as far as it ran; model.py:5: FileNotFoundError")


def test_a_file_that_stops_at_a_tensor_s_value_says_so(project: Project) -> None:
    project.torch_file("""
        model = nn.Linear(3, 4)
        print(model(torch.ones(2, 3)).sum().item())
    """)
    (text,) = project.find().notes
    assert text == (
        "the file was used as far as it ran; model.py:5 reads the value of a tensor: "
        "print(model(torch.ones(2, 3)).sum().item())"
    )


def test_a_loss_alone_is_no_reason_to_go_on(project: Project) -> None:
    project.torch_file("criterion = nn.MSELoss()\nopen('no such file')\n")
    with pytest.raises(LocateError, match="FileNotFoundError"):
        loaded(project)
