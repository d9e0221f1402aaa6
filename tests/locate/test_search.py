"""Which files of a directory are worth loading."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.locate.search import model_files

NET = "import torch.nn as nn\nclass Net(nn.Module):\n    def forward(self, x): return x\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(root: Path) -> list[str]:
    return [file.path.relative_to(root).as_posix() for file in model_files(root)]


@pytest.mark.parametrize(
    "text",
    [
        NET,
        "from torch.nn import Module\nclass A(Module): pass\n",
        "import torch\nclass A(torch.nn.Sequential): pass\n",
        "import pytorch_lightning as pl\nclass A(pl.LightningModule): pass\n",
        "import torch\ndef opscan_model(): ...\n",
        "def opscan_model():\n    from mine import net\n    return net, ()\n",
        "import torch\ndef build_model(): ...\n",
        "import torch\ndef tiny_model(): ...\n",
        "import torch\ndef make() -> torch.nn.Module: ...\n",
        "import torch\ndef make() -> 'torch.nn.Module': ...\n",
        "from torch import nn\nmodel = nn.Linear(3, 4).to('mps')\n",
        "from torch import nn\nmodel: nn.Module = nn.Sequential(nn.Linear(3, 4))\n",
        "import torch\nif True:\n    class A(torch.nn.Module): pass\n",
        "import torch\nclass A(torch.nn.Module): pass\nclass B(A): pass\n",
    ],
)
def test_offers_a_model(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"m.py": text})
    assert found(tmp_path) == ["m.py"]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        "class Net(Module): pass\n",
        "import torch\nx = torch.zeros(3)\n",
        "import torch\nclass A(torch.nn.Parameter): pass\n",
        "import torch\nclass A(torch.utils.data.Dataset): pass\n",
        "import torch\nclass DiceLoss(torch.nn.Module): pass\n",
        "import torch\ncriterion = torch.nn.CrossEntropyLoss()\n",
        "import torch\ndef train_model(): ...\n",
        "import torch\ndef save_model(model): ...\n",
        "import torch\ndef _build_model() -> torch.nn.Module: ...\n",
        "import torch\nif __name__ == '__main__':\n    model = torch.nn.Linear(1, 2)\n",
        "# torch\nthis is ( no python\n",
    ],
)
def test_offers_no_model(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"m.py": text})
    assert found(tmp_path) == []


def test_invalid_python_that_speaks_of_modules_is_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": "import torch\nclass A(torch.nn.Module:\n"})
    assert found(tmp_path) == ["m.py"]


def test_skipped_places(tmp_path: Path) -> None:
    skipped = (
        ".hidden/m.py",
        "venv/lib/m.py",
        "myenv/m.py",
        "site-packages/m.py",
        "build/m.py",
        "dist/m.py",
        "x.egg-info/m.py",
        "__pycache__/m.py",
        "tests/m.py",
        "test_m.py",
        "m_test.py",
        "conftest.py",
        "setup.py",
        ".m.py",
        "m.pyi",
    )
    write(tmp_path, dict.fromkeys(skipped, NET))
    write(tmp_path, {"myenv/pyvenv.cfg": "", "src/m.py": NET})
    assert found(tmp_path) == ["src/m.py"]


def test_a_directory_named_itself_is_searched_whatever_its_name(tmp_path: Path) -> None:
    write(tmp_path, {"tests/m.py": NET})
    assert found(tmp_path / "tests") == ["m.py"]


def test_order_is_stable(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(["z.py", "a.py", "b/a.py", "a/z.py"], NET))
    assert found(tmp_path) == ["a.py", "z.py", "a/z.py", "b/a.py"]


def test_base_class_in_another_file(tmp_path: Path) -> None:
    base = "import torch\nclass Base(torch.nn.Module): pass\n"
    net = "import torch\nfrom base import Base\nclass Net(Base): pass\n"
    write(tmp_path, {"base.py": base, "net.py": net})
    assert "net.py" in found(tmp_path)


def test_a_file_of_parts_is_left_out_and_named(tmp_path: Path) -> None:
    layers = "import torch\nclass Block(torch.nn.Module): pass\n"
    net = (
        "import torch\nfrom .layers import Block\n"
        "class Net(torch.nn.Module):\n    def __init__(self): self.b = Block()\n"
    )
    write(tmp_path, {"layers.py": layers, "net.py": net})
    (file,) = model_files(tmp_path)
    assert file.path == tmp_path / "net.py"
    assert file.notes == ("layers.py is not scanned on its own: its classes are parts of net.py",)


def test_parts_of_parts_are_named_by_the_file_that_is_scanned(tmp_path: Path) -> None:
    a = "import torch\nclass A(torch.nn.Module): pass\n"
    b = "import torch\nimport a\nclass B(torch.nn.Module):\n    def f(self): return a.A()\n"
    c = "import torch\nfrom b import B\nclass C(torch.nn.Module):\n    def f(self): return B()\n"
    write(tmp_path, {"a.py": a, "b.py": b, "c.py": c})
    (file,) = model_files(tmp_path)
    assert file.path.name == "c.py"
    assert [text.split()[0] for text in file.notes] == ["a.py", "b.py"]


def test_a_file_with_one_unused_model_is_kept(tmp_path: Path) -> None:
    layers = "import torch\nclass Block(torch.nn.Module): pass\nclass Net2(torch.nn.Module): pass\n"
    net = (
        "import torch\nfrom layers import Block\n"
        "class Net(torch.nn.Module):\n    def __init__(self): self.b = Block()\n"
    )
    write(tmp_path, {"layers.py": layers, "net.py": net})
    assert found(tmp_path) == ["layers.py", "net.py"]


def test_files_that_use_each_other_are_not_both_lost(tmp_path: Path) -> None:
    a = "import torch\nimport b\nclass A(torch.nn.Module):\n    def f(self): return b.B()\n"
    b = "import torch\nimport a\nclass B(torch.nn.Module):\n    def f(self): return a.A()\n"
    write(tmp_path, {"a.py": a, "b.py": b})
    assert len(found(tmp_path)) == 1


def test_links_to_parents_end(tmp_path: Path) -> None:
    write(tmp_path, {"m.py": NET})
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert found(tmp_path) == ["m.py"]
