"""What a source rule is: a check declared for the names or nodes that it listens to.

One walk over a file serves all rules. A rule is one function; its docstring is its page:

    @source_rule(
        "OPS699",
        "cuda-seed",
        "warning",
        since="0.1.0",
        on=[calls("torch.cuda.manual_seed")],
    )
    def cuda_seed(node: ast.AST, here: Here) -> Hit | None:
        '''A seed that is set for CUDA alone.
        ...
        '''
        return here.hit(node, "torch.cuda.manual_seed does not seed MPS", "Call torch.manual_seed.")

A rule that can be fixed returns its `Correction` with the hit: detection and repair are one. The
records are tuples, since a hook on one file has no time to build classes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scanner.rule import Fixes, page_of
from scanner.source.triggers import Trigger, tokens_of

if TYPE_CHECKING:
    from scanner.records import Severity
    from scanner.source.here import Here

__all__ = [
    "DEVICE",
    "Check",
    "Correction",
    "Edit",
    "Hit",
    "SourceRule",
    "Span",
    "source_rule",
]


DEVICE = "__opscan_device__"
"""In the text of edits: the variable of the file that holds the device, chosen at run time. `opscan
fix` puts its name there, and defines it below the imports where the file has none."""


class Span(NamedTuple):
    """A range of a file: 1-based, columns in characters, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Edit(NamedTuple):
    """Text that replaces a range; an empty range inserts."""

    span: Span
    text: str


class Correction(NamedTuple):
    """How `opscan fix` would mend a hit."""

    description: str
    """As an order: `Replace .cuda() by .to(device)`."""
    safe: bool
    """Whether the program means the same afterwards wherever it ran before."""
    edits: tuple[Edit, ...]
    """Made together or not at all; none of them touches another."""
    imports: tuple[str, ...] = ()
    """Statements that the edits rely on, as `import torch`; added where the file lacks them."""


class Hit(NamedTuple):
    """A place in the source that a rule has something to say about. `Here.hit` makes them."""

    span: Span
    message: str
    """What is wrong, in a sentence."""
    remedy: str
    """What the user can do, concretely."""
    scope: str = ""
    """Where it stands: `Net.forward`; empty for the module level."""
    severity: Severity | None = None
    """Instead of the rule's own, where the case is less sure than the rule."""
    correction: Correction | None = None
    target: str = ""
    """`Target.id`, where the hit is about one target."""
    op: str = ""
    fixed_in: str | None = None
    links: tuple[str, ...] = ()


Check = Callable[[ast.AST, "Here"], "Hit | Iterable[Hit] | None"]


class SourceRule(NamedTuple):
    """One entry of the registry; a `scanner.rule.Documented`."""

    id: str
    name: str
    severity: Severity
    since: str
    on: tuple[Trigger, ...]
    tokens: frozenset[str]
    """A file without any of these words cannot have a hit, and is not parsed for this rule."""
    check: Check
    fixes: Fixes = "none"
    """Which corrections its hits may have."""

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return page_of(self.check.__doc__)[0]

    @property
    def explanation(self) -> str:
        """The rest of the docstring: Markdown."""
        return page_of(self.check.__doc__)[1]


def source_rule(
    id: str,
    name: str,
    severity: Severity,
    *,
    since: str,
    on: Sequence[Trigger],
    tokens: Iterable[str] = (),
    fixes: Fixes = "none",
) -> Callable[[Check], SourceRule]:
    """Turn a check into a rule.

    `tokens` may be left out for triggers by name: the names' last parts are the words then. Raises
    `ValueError` when neither says which files can be left unparsed.
    """
    words = frozenset(tokens) or tokens_of(on)
    if not words:
        raise ValueError(f"{id} listens to nodes of any file: give it tokens")
    return lambda check: SourceRule(id, name, severity, since, tuple(on), words, check, fixes)
