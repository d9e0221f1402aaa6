"""Calls of the public API that no configuration of a target runs on the GPU, by name alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from scanner.source.here import Here
from scanner.source.interface import Hit, SourceRule, source_rule
from scanner.source.rules.reaching import stays_off_gpu
from scanner.source.rules.rewrites import rewritten
from scanner.source.triggers import calls, methods

if TYPE_CHECKING:
    from opdb.api import Judged
    from scanner.records import Target

__all__ = ["RULES", "rules_for"]

_METHOD = "torch.Tensor."
_TORCHS_ALONE = frozenset(
    ["geqrf", "igamma", "igammac", "isneginf", "isposinf", "kthvalue", "logcumsumexp", "orgqr"]
)
"""Methods without an underscore that only tensors have. Of the others (`mode`, `take`) arrays
and frames have namesakes: they are heard of on what torch made alone."""

Lacks = Mapping[str, tuple["Target", ...]]
"""Qualified name → targets that lack it."""


@source_rule(
    "OPS680",
    "api-unsupported",
    "warning",
    since="0.1.0",
    on=[calls("torch.*")],
    tokens=["torch"],
    fixes="unsafe",
)
def api_unsupported(node: ast.AST, here: Here) -> Iterable[Hit]:
    """A function of torch that raises on MPS in the targeted release, whatever its arguments are.

    opscan knows which operators each function of the public API reaches, from running PyTorch's
    own samples of it, and which operators each release has for MPS, from its wheel. A function is
    reported when every sample reaches an operator that the release lacks. What the tensors are,
    and whether they are on the GPU at all, cannot be seen from the source: it is a warning. In a
    function something has to show that a device comes there, as for OPS620.
    Methods such as `x.logcumsumexp()` are reported where no other library has one of that name,
    or where `x` is made by torch in the same function.

    A scan that captures the model judges the very configuration (OPS101); this rule sees the rest:
    metrics, data preparation, branches that a step does not take.

    ## What to do

    - Upgrade, when a later release has a kernel. The finding names the first one.
    - Run the line on the CPU: give it `x.cpu()` and move the result back. opscan says nothing then.
    - Set `PYTORCH_ENABLE_MPS_FALLBACK=1` before torch is imported, where the finding says so.
    """
    return _found(_lacks(here.targets)[0], node, here)


@source_rule(
    "OPS681",
    "api-on-cpu",
    "note",
    since="0.1.0",
    on=[calls("torch.*")],
    tokens=["torch"],
    fixes="unsafe",
)
def api_on_cpu(node: ast.AST, here: Here) -> Iterable[Hit]:
    """A function of torch that runs on the CPU in the targeted release, whatever its arguments are.

    Every call waits for the GPU, copies the inputs to the CPU and the result back. It is known by
    name alone, as in OPS680; whether the tensors are on the GPU cannot be seen from the source.
    With `fallback=1` in the target, what would raise without the variable is reported here.

    ## What to do

    - Upgrade, when a later release has a kernel. The finding names the first one.
    - Keep the call out of the inner loop, or move its neighbours to the CPU with it.
    """
    return _found(_lacks(here.targets)[1], node, here)


RULES = (api_unsupported, api_on_cpu)


def rules_for(targets: Iterable[Target]) -> tuple[SourceRule, ...]:
    """The two rules, listening to nothing but what these targets lack."""
    raising, falling = _lacks(targets)
    made = ((api_unsupported, raising), (api_on_cpu, falling))
    return tuple(_listening(rule, lacks) for rule, lacks in made if lacks)


def _lacks(targets: Iterable[Target]) -> tuple[Lacks, Lacks]:
    """What raises on which targets, and what runs on the CPU."""
    from opdb import api

    raising: dict[str, tuple[Target, ...]] = {}
    falling: dict[str, tuple[Target, ...]] = {}
    for target in targets:
        for name, lack in api.missing(target.version).items():
            raises = lack == "unsupported" and not (
                target.fallback and api.variable_serves(api.judged(name, target.version))
            )
            which = raising if raises else falling
            which[name] = (*which.get(name, ()), target)
    return raising, falling


def _listening(rule: SourceRule, lacks: Lacks) -> SourceRule:
    names = sorted(lacks)
    of_tensors = [name.removeprefix(_METHOD) for name in names if name.startswith(_METHOD)]
    return rule._replace(
        on=(calls(*names), methods(*of_tensors)),
        tokens=frozenset(name.rpartition(".")[2] for name in names),
        check=partial(_found, lacks),
    )


def _found(lacks: Lacks, node: ast.AST, here: Here) -> Iterator[Hit]:
    name = here.name if here.name in lacks else _METHOD + here.name
    if not isinstance(node, ast.Call) or name not in lacks or here.only_on_cuda:
        return
    by_method = isinstance(node.func, ast.Attribute) and here.name not in lacks
    if by_method and not _is_tensors(node.func, here):  # type: ignore[arg-type]
        return
    if _is_on_cpu(node) or stays_off_gpu(node, here):
        return
    for target in lacks[name]:
        yield _hit(name, target, node, here)


def _is_tensors(method: ast.Attribute, here: Here) -> bool:
    """Whether the method can be no other library's."""
    maker = here.maker(method.value) or ""
    if maker.startswith("torch.") and not maker.startswith("torch.nn.") and maker[6:7].islower():
        return True
    return "_" in method.attr or method.attr in _TORCHS_ALONE


def _is_on_cpu(call: ast.Call) -> bool:
    """`f(x.cpu())`, `x.cpu().f()`, `f(x.to("cpu"))`, `f(..., device="cpu")`."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    given += [call.func.value] if isinstance(call.func, ast.Attribute) else []
    for part in (part for each in given for part in ast.walk(each)):
        if isinstance(part, ast.Attribute) and part.attr in ("cpu", "numpy"):
            return True
        if isinstance(part, ast.Constant) and part.value == "cpu":
            return True
    return False


def _hit(name: str, target: Target, node: ast.Call, here: Here) -> Hit:
    from opdb import api

    judged = api.judged(name, target.version)
    fact = judged.fact
    does = "raises" if judged.status == "unsupported" and not target.fallback else "runs on the CPU"
    reason = fact.reason.partition("; with ")[0] if fact is not None else ""
    hit = here.hit(
        node,
        f"{_spelled(name)} {does} on MPS in torch {target.version}: {reason} (known by name alone; "
        "its tensors were not seen)",
        _remedy(judged),
        correction=rewritten(name, fact.op, target.version, node, here)
        if fact is not None
        else None,
    )
    return hit._replace(
        target=target.id,
        op=fact.op if fact is not None else "",
        fixed_in=fact.fixed_in if fact is not None else None,
        links=fact.links if fact is not None else (),
    )


def _spelled(name: str) -> str:
    return f".{name.removeprefix(_METHOD)}()" if name.startswith(_METHOD) else f"{name}()"


def _remedy(judged: Judged) -> str:
    from opdb import api

    fact = judged.fact
    fixed = fact.fixed_in if fact is not None else None
    parts = [f"Upgrade to torch {fixed} or later, which cures it."] if fixed else []
    if judged.status == "fallback":
        return " ".join([*parts, "Keep it out of the inner loop."])
    parts.append("Run this line on the CPU: give it x.cpu() and move the result back.")
    if api.variable_serves(judged):
        parts.append("Or set PYTORCH_ENABLE_MPS_FALLBACK=1 before torch is imported.")
    return " ".join(parts)
