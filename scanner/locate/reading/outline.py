"""What a file defines, read from its syntax tree: nothing is run and torch is not needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from scanner.locate.reading.trees import Function, dotted, flat, imports, is_main_guard

__all__ = [
    "HOOK",
    "ClassFact",
    "FunctionFact",
    "Outline",
    "is_factory_name",
    "is_loss_name",
    "outline",
]

HOOK = "opscan_model"
"""Name of the function by which a file says what to scan."""

_FACTORIES = frozenset(
    [
        "build_model",
        "create_model",
        "get_model",
        "make_model",
        "model_fn",
        "init_model",
        "construct_model",
        "build_net",
        "build_network",
        "create_network",
        "get_network",
        "make_network",
    ]
)
_VERBS = frozenset(
    [
        "train",
        "test",
        "eval",
        "evaluate",
        "validate",
        "run",
        "fit",
        "save",
        "export",
        "print",
        "plot",
        "show",
        "convert",
        "compile",
        "check",
        "compare",
        "benchmark",
        "profile",
        "summarize",
        "summarise",
        "log",
        "push",
        "upload",
        "download",
        "is",
        "has",
        "set",
        "update",
        "step",
        "freeze",
        "unfreeze",
        "predict",
        "score",
        "inspect",
        "describe",
        "quantize",
        "prune",
    ]
)
"""First words of names that end in `_model` and do not return one."""

_LIBRARIES = (
    "torch.nn.",
    "lightning.",
    "pytorch_lightning.",
    "transformers.",
    "diffusers.",
    "timm.",
    "torchvision.models.",
    "torch_geometric.nn.",
)
_NO_MODULES = frozenset({"Parameter", "Buffer", "UninitializedParameter", "LightningDataModule"})


@dataclass(frozen=True, kw_only=True)
class ClassFact:
    """A class at module level."""

    name: str
    line: int
    bases: tuple[str, ...]
    """Dotted, with import aliases resolved: `torch.nn.Module`."""
    uses: frozenset[str]
    """Dotted names that its body loads, aliases resolved."""
    is_module: bool


@dataclass(frozen=True, kw_only=True)
class FunctionFact:
    """A function at module level."""

    name: str
    line: int
    is_factory: bool
    """Whether its name or annotation says that it returns a model."""
    uses: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Outline:
    """A file's definitions, in order."""

    classes: tuple[ClassFact, ...]
    functions: tuple[FunctionFact, ...]
    models: tuple[str, ...]
    """Names assigned at module level from a call that makes a module."""

    @property
    def has_hook(self) -> bool:
        """Whether the file defines `opscan_model`."""
        return any(function.name == HOOK for function in self.functions)

    @property
    def modules(self) -> tuple[ClassFact, ...]:
        """Classes that are `torch.nn.Module` subclasses as far as the text shows."""
        return tuple(fact for fact in self.classes if fact.is_module)

    @property
    def factories(self) -> tuple[FunctionFact, ...]:
        """Functions that return a model as far as the text shows."""
        return tuple(fact for fact in self.functions if fact.is_factory)

    @property
    def offers_model(self) -> bool:
        """Whether there is anything to scan."""
        modules = [m for m in self.modules if not is_loss_name(m.name)]
        return bool(self.has_hook or modules or self.factories or self.models)


def is_factory_name(name: str) -> bool:
    """Whether a function of this name makes a model by convention."""
    if name in _FACTORIES:
        return True
    return name.endswith("_model") and name.split("_")[0] not in _VERBS and name != HOOK


def is_loss_name(name: str) -> bool:
    """Whether a module class of this name is a loss by convention, and no model."""
    return name.endswith(("Loss", "Criterion", "Metric"))


def outline(tree: ast.Module, known: frozenset[str] = frozenset()) -> Outline:
    """Read a tree; `known` are names of module classes that other files define."""
    names = imports(tree)
    body = [s for s in flat(tree.body, guards=False) if not is_main_guard(s)]
    classes = [s for s in body if isinstance(s, ast.ClassDef)]
    modules = _module_names(classes, names, known)
    return Outline(
        classes=tuple(_class_fact(node, names, modules) for node in classes),
        functions=tuple(
            _function_fact(node, names, modules) for node in body if isinstance(node, Function)
        ),
        models=tuple(_model_names(body, names, modules | known)),
    )


def _module_names(
    classes: list[ast.ClassDef], names: dict[str, str], known: frozenset[str]
) -> frozenset[str]:
    found: set[str] = set()
    for _ in classes:
        before = len(found)
        for node in classes:
            if any(_is_module_base(base, found | known) for base in _bases(node, names)):
                found.add(node.name)
        if len(found) == before:
            break
    return frozenset(found)


def _bases(node: ast.ClassDef, names: dict[str, str]) -> tuple[str, ...]:
    resolved = (_resolved(base, names) for base in node.bases)
    return tuple(base for base in resolved if base)


def _resolved(node: ast.AST, names: dict[str, str]) -> str | None:
    if isinstance(node, ast.Subscript):
        node = node.value
    chain = dotted(node)
    if chain is None:
        return None
    head, dot, rest = chain.partition(".")
    return names.get(head, head) + dot + rest


def _is_module_base(base: str, modules: set[str] | frozenset[str]) -> bool:
    last = base.rpartition(".")[2]
    if last in _NO_MODULES:
        return False
    if last in modules or last in {"Module", "LightningModule", "ModelMixin"}:
        return True
    return last.endswith("PreTrainedModel") or _is_library_class(base)


def _is_library_class(name: str) -> bool:
    last = name.rpartition(".")[2]
    if last in _NO_MODULES or ".functional." in name or ".utils." in name or ".init." in name:
        return False
    return name.startswith(_LIBRARIES[0]) and last[:1].isupper()


def _uses(node: ast.AST, names: dict[str, str]) -> frozenset[str]:
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load):
            chain = _resolved(part, names)
            if chain:
                found.add(chain)
    return frozenset(found)


def _class_fact(node: ast.ClassDef, names: dict[str, str], modules: frozenset[str]) -> ClassFact:
    return ClassFact(
        name=node.name,
        line=node.lineno,
        bases=_bases(node, names),
        uses=_uses(node, names) - {node.name},
        is_module=node.name in modules,
    )


def _function_fact(node: Function, names: dict[str, str], modules: frozenset[str]) -> FunctionFact:
    annotated = _returns_module(node.returns, names, modules)
    private = node.name.startswith("_")
    return FunctionFact(
        name=node.name,
        line=node.lineno,
        is_factory=not private and (annotated or is_factory_name(node.name)),
        uses=_uses(node, names) - {node.name},
    )


def _returns_module(node: ast.expr | None, names: dict[str, str], modules: frozenset[str]) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return False
    name = _resolved(node, names) if node is not None else None
    return (
        name is not None and not isinstance(node, ast.Subscript) and _is_module_base(name, modules)
    )


def _model_names(
    body: list[ast.stmt], names: dict[str, str], modules: frozenset[str]
) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if _makes_module(statement.value, names, modules):
                yield from (t.id for t in targets if isinstance(t, ast.Name))


def _makes_module(node: ast.expr, names: dict[str, str], modules: frozenset[str]) -> bool:
    """Whether the expression is a module's constructor, perhaps with `.to(device)` and such."""
    if not isinstance(node, ast.Call):
        return False
    called = _resolved(node.func, names)
    if called is None:
        inner = node.func
        return isinstance(inner, ast.Attribute) and _makes_module(inner.value, names, modules)
    last = called.rpartition(".")[2]
    if is_loss_name(last):
        return False
    if last in modules or _is_library_class(called):
        return True
    return called.startswith(_LIBRARIES[1:]) or is_factory_name(last)
