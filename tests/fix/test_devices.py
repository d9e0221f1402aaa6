"""A device that is chosen at run time, in place of one that is named."""

from __future__ import annotations

import textwrap

import pytest

from tests.fix.cases import assert_fixed

HELPER = """
    {name} = torch.device(
        "cuda"
        if torch.cuda.is_available()
        else "mps"
        if torch.backends.mps.is_available()
        else "cpu"
    )
"""


def helper(name: str = "device") -> str:
    return textwrap.dedent(HELPER).format(name=name)


def test_the_device_is_chosen_once_below_the_imports() -> None:
    assert_fixed(
        '"""What it is."""\nimport torch\nfrom torch import nn  # layers\n\n\n'
        "model = nn.Linear(2, 2).cuda()  # on the GPU\nx = y.cuda(non_blocking=True)\n",
        '"""What it is."""\nimport torch\nfrom torch import nn  # layers\n' + helper() + "\n\n"
        "model = nn.Linear(2, 2).to(device)  # on the GPU\nx = y.to(device, non_blocking=True)\n",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.cuda()", "x.to(device)"),
        ("x.cuda ()", "x.to (device)"),
        ("x.cuda( non_blocking=True )", "x.to(device, non_blocking=True )"),
        (
            "x.cuda(\n    non_blocking=True,  # why\n)",
            "x.to(device,\n    non_blocking=True,  # why\n)",
        ),
        ("(x\n    .cuda())", "(x\n    .to(device))"),
        ("x \\\n    .cuda()", "x \\\n    .to(device)"),
        ("f(x.cuda(), y=z.cuda().cuda())", "f(x.to(device), y=z.to(device).to(device))"),
        ("é = 'ö'; é.cuda()", "é = 'ö'; é.to(device)"),
        ("x.to('cuda')", "x.to(device)"),
        ('x.to("cuda:0", torch.half)', "x.to(device, torch.half)"),
    ],
)
def test_moves(before: str, after: str) -> None:
    assert_fixed(f"import torch\n{before}\n", f"import torch\n{helper()}{after}\n")


@pytest.mark.parametrize(
    "code",
    [
        "x.cuda(1)",
        "x.cuda(rank)",
        "x.cuda(device=rank)",
        "x.cuda\\\n()",
        'x.to("cuda:1")',
        'torch.device("cuda", rank)',
        'if x.device == torch.device("cuda"): pass',
        'f"{x.cuda()}"',
        "text = 'x.cuda()'  # x.cuda()",
        "if torch.cuda.is_available():\n    x.cuda()",
    ],
)
def test_what_has_no_one_right_answer_is_left_alone(code: str) -> None:
    assert_fixed(f"import torch\n{code}\n")


def test_text_in_a_variable_is_replaced_where_it_is_assigned() -> None:
    assert_fixed(
        """
        import torch
        where = "cuda"  # here
        x.to(where)
        """,
        """
        import torch
        where = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"  # here
        x.to(where)
        """,  # noqa: E501
    )


def test_a_device_that_is_made_in_the_file_is_used_for_the_rest() -> None:
    assert_fixed(
        """
        import torch as t
        gpu = t.device("cuda")
        x.cuda()
        """,
        """
        import torch as t
        gpu = t.device("cuda" if t.cuda.is_available() else "mps" if t.backends.mps.is_available() else "cpu")
        x.to(gpu)
        """,  # noqa: E501
    )


@pytest.mark.parametrize(
    "code",
    [
        "def f(device): pass",
        "import device",
        "from a import b as device",
        "print(device)",
        "for device in devices: pass",
        "class device: pass",
    ],
)
def test_a_name_that_the_file_has_is_not_taken(code: str) -> None:
    mended = assert_fixed(
        f"import torch\n\nx = 1\n{code}\nx.cuda()\n",
        f"import torch\n{helper('default_device')}\nx = 1\n{code}\nx.to(default_device)\n",
    )
    assert [each.rule for each in mended.before] == ["OPS601"]
    assert mended.after == ()


def test_names_never_run_out() -> None:
    taken = "device = default_device = chosen_device = device_2 = 1\n"
    assert_fixed(
        f"import torch\n\n{taken}x.cuda()\n",
        f"import torch\n{helper('device_3')}\n{taken}x.to(device_3)\n",
    )


def test_torch_is_imported_where_the_file_has_only_parts_of_it() -> None:
    assert_fixed(
        "from torch import nn\nnn.Linear(2, 2).cuda()\n",
        f"from torch import nn\nimport torch\n{helper()}\nnn.Linear(2, 2).to(device)\n",
    )


def test_a_file_without_imports_gets_them_below_its_docstring() -> None:
    assert_fixed(
        '#!/bin/python\n"""For torch."""\n\nx.cuda()\n',
        f'#!/bin/python\n"""For torch."""\n\nimport torch\n{helper()}\nx.to(device)\n',
    )
    assert_fixed(
        "# torch\n@g(x.cuda())\ndef f(): pass\n",
        f"# torch\nimport torch\n{helper()}\n@g(x.to(device))\ndef f(): pass\n",
    )


def test_statements_on_one_line_and_a_last_line_without_end() -> None:
    chosen = (
        'torch.device("cuda" if torch.cuda.is_available() else "mps" '
        'if torch.backends.mps.is_available() else "cpu")'
    )
    assert_fixed("import torch; x.cuda()", f"import torch; device = {chosen}; x.to(device)")


@pytest.mark.parametrize(
    "head",
    [
        "try:\n    import torch\nexcept ImportError:\n    torch = None",
        "torch = load('torch')",
        "def f():\n    import torch",
        "from lazy import torch",
        "class torch: pass",
    ],
)
def test_a_name_torch_that_may_be_something_else_is_left_alone(head: str) -> None:
    assert_fixed(f"{head}\nx.cuda()\n")


def test_what_stands_above_the_imports_is_left_alone() -> None:
    assert_fixed("def f():\n    x.cuda()\n\nimport torch\n")


def test_newlines_of_the_file_are_used() -> None:
    assert_fixed(
        "import torch\r\nx.cuda()\r\n",
        f"import torch\n{helper()}x.to(device)\n".replace("\n", "\r\n"),
    )
