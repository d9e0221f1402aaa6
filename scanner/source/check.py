"""One file's text → hits → findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scanner.source.here import Here
from scanner.source.interface import Hit, SourceRule
from scanner.source.listeners import Listeners
from scanner.source.module import Module
from scanner.source.walk import walk

if TYPE_CHECKING:
    from scanner.records import Finding, Target

__all__ = ["FRAMEWORKS", "Checker", "RuleHit", "concerns"]

FRAMEWORKS = (
    *(b"torch", b"tensorflow", b"keras", b"lightning", b"transformers", b"accelerate", b"jax"),
    *(b"diffusers", b"deepspeed", b"bitsandbytes", b"flash_attn", b"xformers", b"triton"),
    *(b"cupy", b"fastai", b"timm", b"peft", b"trl", b"ultralytics", b"CUDA_", b"PYTORCH_"),
)
"""A file with none of these words is not looked at."""


class RuleHit(NamedTuple):
    """A hit and the rule whose it is."""

    rule: SourceRule
    hit: Hit


class Checker:
    """A set of rules, ready to look at any number of files."""

    def __init__(self, rules: Iterable[SourceRule], targets: Sequence[Target] = ()) -> None:
        self.rules = tuple(rules)
        self.targets = tuple(targets)
        self._listeners = Listeners(self.rules)
        self._tokens = _pattern(token for rule in self.rules for token in rule.tokens)

    def may_hit(self, text: str) -> bool:
        """Whether a rule could have something to say; if not, parsing is a waste."""
        return self._tokens.search(text) is not None

    def hits(self, module: Module) -> list[RuleHit]:
        """What the rules say of a parsed file, in the order of lines."""
        found = (RuleHit(*each) for each in walk(Here(module, self.targets), self._listeners))
        return sorted(set(found), key=lambda each: (each.hit.span, each.rule.id, each.hit.message))

    def judged(self, module: Module) -> list[tuple[RuleHit, Finding]]:
        """Hits, each with its finding."""
        hits = self.hits(module)
        return list(zip(hits, _findings(hits, module), strict=True))

    def findings(self, module: Module) -> tuple[Finding, ...]:
        """The same as findings."""
        return tuple(_findings(self.hits(module), module))


def concerns(content: bytes) -> bool:
    """Whether a file mentions a framework at all."""
    return any(word in content for word in FRAMEWORKS)


RELEASE = re.compile(r"^\w+==[^,]*|,(?:macos=|tensorflow-metal==)[^,]*")
"""What a target's id says of versions: a finding is the same in the next one."""


def _pattern(tokens: Iterable[str]) -> re.Pattern[str]:
    words = sorted(set(tokens))
    return re.compile("|".join(map(re.escape, words)) if words else "(?!)")


def _findings(hits: Iterable[RuleHit], module: Module) -> Iterator[Finding]:
    from scanner.records import Finding, Fix, Location

    seen: Counter[tuple[str, ...]] = Counter()
    for rule, hit in hits:
        line, column, end_line, end_column = hit.span
        code = module.lines[line - 1].strip()
        # The node alone: a comment beside it, as one that ignores the finding, changes nothing.
        node = " ".join(module.slice(hit.span).split())
        machine = RELEASE.sub("", hit.target)
        identity = (rule.id, machine, hit.op, hit.scope, node)
        yield Finding(
            rule=rule.id,
            severity=hit.severity or rule.severity,
            target=hit.target,
            op=hit.op,
            message=hit.message,
            remedy=hit.remedy,
            location=Location(
                file=module.file,
                line=line,
                code=code,
                module="",
                column=column,
                end_line=end_line,
                end_column=end_column,
            ),
            fixed_in=hit.fixed_in,
            links=hit.links,
            fingerprint=_fingerprint((*identity, str(seen[identity]))),
            fix=Fix(description=hit.correction.description, safe=hit.correction.safe)
            if hit.correction
            else None,
        )
        seen[identity] += 1


def _fingerprint(parts: Iterable[str]) -> str:
    """What stays when lines move and files are renamed."""
    from hashlib import sha256  # loads OpenSSL, which files without findings do not need

    return sha256("\0".join(parts).encode()).hexdigest()[:32]
