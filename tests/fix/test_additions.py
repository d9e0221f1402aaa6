"""What is added below the imports of a file, by a codemod of LibCST."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libcst.codemod import CodemodContext, CodemodTest

from scanner.fix import additions
from scanner.fix.additions import AddBelowImports, Additions, insertion, only_added, readable
from scanner.fix.edits import applied
from scanner.fix.files import fix_content
from scanner.fix.mend import Mender
from scanner.source.module import Module
from scanner.source.work import checker_for
from tests.fix.cases import mend, nothing_accepted
from tests.fix.programs import program

BOTH = Additions(("torch",), ("device = choose(torch)",), 0)
DEVICE = BOTH._replace(modules=())


class TestAddBelowImports(CodemodTest):
    """LibCST's own way to test codemods: before and after, without their indentation."""

    def check(self, before: str, after: str, wanted: Additions) -> None:
        old, new = (self.make_fixture_data(text) for text in (before, after))
        tree = cst.parse_module(old)
        made = tree.visit(AddBelowImports(CodemodContext(), wanted)).code
        assert new == made
        edit = only_added(old, made)
        assert edit is not None
        assert applied(Module(old), [edit]) == made

    def test_below_the_docstring_and_the_future(self) -> None:
        before = '''
            #!/usr/bin/env python
            # coding: utf-8
            """What it is."""
            from __future__ import annotations

            x = 1
        '''
        after = '''
            #!/usr/bin/env python
            # coding: utf-8
            """What it is."""
            from __future__ import annotations
            import torch

            device = choose(torch)

            x = 1
        '''
        self.check(before, after, BOTH)

    def test_below_a_docstring_alone(self) -> None:
        before = '''
            """What it is."""
            # about x
            x = 1
        '''
        after = '''
            """What it is."""

            import torch

            device = choose(torch)

            # about x
            x = 1
        '''
        self.check(before, after, BOTH)

    def test_below_imports_that_may_fail_or_are_conditional(self) -> None:
        before = """
            import torch
            if TYPE_CHECKING:
                from a import B
            try:
                import apex  # fast
            except ImportError:
                pass
            # about x
            x = 1
        """
        after = """
            import torch
            if TYPE_CHECKING:
                from a import B
            try:
                import apex  # fast
            except ImportError:
                pass

            device = choose(torch)
            # about x
            x = 1
        """
        self.check(before, after, DEVICE)

    def test_below_torch_and_not_above_what_must_come_before(self) -> None:
        before = """
            import os
            os.environ["CUDA_VISIBLE_DEVICES"] = "0"
            from torch import nn
            x = 1
        """
        after = """
            import os
            os.environ["CUDA_VISIBLE_DEVICES"] = "0"
            from torch import nn
            import torch

            device = choose(torch)

            x = 1
        """
        self.check(before, after, BOTH._replace(below=2))

    def test_on_a_line_that_goes_on(self) -> None:
        before = "from torch import nn; f(); import torch, os; import sys; x = 1  # why\n"
        after = (
            "from torch import nn; f(); import torch, os; import sys; "
            "device = choose(torch); x = 1  # why\n"
        )
        self.check(before, after, DEVICE._replace(below=2))
        before = "import os; from torch import nn; nn.f ()\n"
        after = "import os; from torch import nn; import torch; device = choose(torch); nn.f ()\n"
        self.check(before, after, BOTH)

    def test_below_a_line_that_ends_with_an_import(self) -> None:
        before = "y = 0; import torch\nx = 1\n"
        after = "y = 0; import torch\n\ndevice = choose(torch)\nx = 1\n"
        self.check(before, after, DEVICE._replace(below=1))

    def test_text_below_the_imports_is_no_docstring(self) -> None:
        before = 'from torch import nn\n"a text"\nx = 1\n'
        after = 'from torch import nn\n"a text"\n\nimport torch\n\ndevice = choose(torch)\nx = 1\n'
        self.check(before, after, BOTH)

    def test_nothing_but_imports(self) -> None:
        before = "import os\nimport torch\n# the end\n"
        after = "import os\nimport torch\n\ndevice = choose(torch)\n# the end\n"
        self.check(before, after, DEVICE)


@pytest.mark.parametrize("new", ["a\nc\nb\n", "c\na\nb\n", "a\nb\nc\n", "a\nb\nb\n", "a\nxb\n"])
def test_an_insertion_is_found_wherever_it_is(new: str) -> None:
    edit = only_added("a\nb\n", new)
    assert edit is not None
    assert applied(Module("a\nb\n"), [edit]) == new


@pytest.mark.parametrize("new", ["a\n", "", "b\na\n", "x\na\n\nb\ny\n", "A\nb\nc\n"])
def test_other_changes_are_no_insertion(new: str) -> None:
    assert only_added("a\nb\n", new) is None


@given(st.text("ab\n", max_size=12), st.text("ab\n", max_size=6), st.integers(0, 12))
def test_every_insertion_is_found(old: str, text: str, place: int) -> None:
    new = old[:place] + text + old[place:]
    edit = only_added(old, new)
    assert edit is not None
    lines = old.split("\n")
    at = sum(len(line) + 1 for line in lines[: edit.span.line - 1]) + edit.span.column - 1
    assert old[:at] + edit.text + old[at:] == new


FILES = sorted(Path(additions.__file__).parents[1].rglob("*.py"))
WANTED = st.builds(
    Additions._replace,
    st.sampled_from([BOTH, DEVICE, BOTH._replace(definitions=())]),
    below=st.none() | st.integers(0, 9),
)


def added_to(text: str, wanted: Additions) -> None:
    """Checks that additions leave all else as it is; nothing for what LibCST does not read."""
    try:
        module = Module(text)
    except SyntaxError:
        return
    if wanted.below is not None:
        last = len(module.tree.body) - 1
        wanted = wanted._replace(below=min(wanted.below, last) if last >= 0 else None)
    edit = insertion(module, wanted)
    if edit is None:
        assert readable("\n".join(module.lines)) is None
        return
    new = applied(module, [edit])
    assert edit.span[:2] == edit.span[2:]
    before, after = ast.parse(text).body, ast.parse(new).body
    added = [*(f"import {module}" for module in wanted.modules), *wanted.definitions]
    kept = [ast.unparse(each) for each in after]
    old = [ast.unparse(each) for each in before]
    first = 0 if wanted.below is None else wanted.below + 1
    places = range(first, len(kept))
    rest = [(kept[i : i + len(added)], kept[:i] + kept[i + len(added) :]) for i in places]
    assert (added, old) in rest


@given(st.integers(0, 10**6), WANTED)
@settings(max_examples=25, deadline=None)
def test_additions_to_generated_files_change_nothing_else(seed: int, wanted: Additions) -> None:
    added_to(program(seed).content.decode("utf-8-sig", "replace"), wanted)


@given(st.sampled_from(FILES), WANTED, st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=10, deadline=None)
def test_additions_to_real_files_change_nothing_else(
    file: Path, wanted: Additions, newline: str
) -> None:
    added_to(file.read_text("utf-8").replace("\n", newline), wanted)


PARTS = st.sampled_from(
    [
        *(
            "import torch\n",
            "from torch import nn\n",
            "import os, sys  # why\n",
            "import torch as t\n",
        ),
        *("from __future__ import annotations\n", "'''text'''\n", "# a comment\n", "\n", "\f\n"),
        *("import a; x = 1\n", "x = 1; import torch;\n", "import torch; import a; x = 1 ;y=2\n"),
        *(
            "if A:\n\timport b\n",
            "try:\n  import c\nfinally: pass\n",
            "def f():\n\tpass\n\t# in f\n",
        ),
        *("\\\n", "x = [\n  1,\n# in it\n]\n", "@a\n# between\nclass C: pass\n", "x = '\\\n'\n"),
        *("import torch.nn \\\n  as nn\n", "from torch import *\n", "from . import torch\n", "x"),
        *("(x): int\n", "import torch", "é = 'ö' ; import torch\n", "#!/bin/python\n"),
    ]
)


@given(st.lists(PARTS, max_size=8).map("".join), WANTED, st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=100, deadline=None)
def test_additions_to_any_head_change_nothing_else(
    text: str, wanted: Additions, newline: str
) -> None:
    added_to(text.replace("\n", newline), wanted)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_bytes_outside_the_addition_stay(mark: bytes, newline: str) -> None:
    lines = ["#!/bin/python", "# torch", "\f", "if y :", "\tx.cuda( )\t# ünï", "", "x"]
    old = mark + newline.join(lines).encode()
    mender = Mender(checker_for(()), unsafe=True, accepts=nothing_accepted)
    new = fix_content(old, mender).new
    first, _, rest = old.partition(b"if y :")
    assert new.startswith(first + b"import torch")
    assert new.endswith(b"if y :" + rest.replace(b"x.cuda(", b"x.to(device"))
    assert set(re.findall(rb"\r\n|\r|\n", new)) == {newline.encode()}


UNREADABLE = "import torch\n(where): str\n"


def test_what_libcst_cannot_read_gets_text_edits_alone() -> None:
    assert readable(UNREADABLE) is None
    mended = mend(UNREADABLE + "x = torch.zeros(3, dtype=torch.float64)\nx.cuda()\n")
    assert mended.text == UNREADABLE + "x = torch.zeros(3, dtype=torch.float32)\nx.cuda()\n"
    assert "OPS601" in {each.rule for each in mended.after}
    assert mended.remark.startswith("LibCST cannot read the file, so that no import")


def test_nothing_is_said_of_what_libcst_cannot_read_where_nothing_is_left() -> None:
    assert mend(UNREADABLE + "x = torch.zeros(3, dtype=torch.float64)\n").remark == ""
    assert mend("x = 1\n").remark == ""


@pytest.mark.parametrize("text", ["\\\nx = 1\n", "(x): int\n", "x = \n"])
def test_what_does_not_come_back_as_it_was_is_not_readable(text: str) -> None:
    assert readable(text) is None
