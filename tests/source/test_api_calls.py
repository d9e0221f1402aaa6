"""Calls judged by their names alone."""

from __future__ import annotations

from scanner.records import Target
from scanner.source.rules.api_calls import rules_for
from tests.source.cases import assert_hits, rule

OLD = Target(framework="torch", version="2.5.1")
NEW = Target(framework="torch", version="2.15.0")


def test_functions_and_methods_that_a_release_lacks_are_found() -> None:
    raising, _ = rules_for([OLD])
    found = assert_hits(
        raising,
        """
        import torch
        import torch.nn.functional as F
        from torch import nn, kthvalue as kth
        kth(x, 2)  # hit
        self.x[0].logcumsumexp(dim=1)  # hit
        loss = nn.CTCLoss()  # hit
        F.ctc_loss(a, b, c, d)  # hit
        values.take(3), frame.mode(), x.kthvalue
        y = torch.randn(3)
        y.take(3)  # hit
        torch.mm(a, b), my.kthvalue.mm(a)
        kth(x.cpu(), 2), x.to("cpu").logcumsumexp(), kth(x, 2, device="cpu")
        if torch.cuda.is_available(): kth(x, 2)
        """,
        [OLD],
    )
    hit = found[0].hit
    assert hit.message.startswith("torch.kthvalue() raises on MPS in torch 2.5.1: its kernel")
    assert "known by name alone" in hit.message
    assert (hit.target, hit.op, hit.fixed_in) == ("torch==2.5.1", "aten::kthvalue", "2.9.0")
    assert "Upgrade to torch 2.9.0" in hit.remedy


def test_each_target_has_its_own_hit() -> None:
    code = "import torch\ntorch.linalg.eig(x)  # hit 2\ntorch.kthvalue(x, 2)  # hit\n"
    raising, _ = rules_for([OLD, NEW])
    found = assert_hits(raising, code, [OLD, NEW])
    assert [each.hit.target for each in found] == ["torch==2.15.0", "torch==2.5.1", "torch==2.5.1"]


def test_what_runs_on_the_cpu_is_a_note() -> None:
    _, falling = rules_for([OLD])
    (found,) = assert_hits(falling, "import torch\ntorch.linalg.svd(x)  # hit\n", [OLD])
    assert found.rule.severity == "note"
    assert "runs on the CPU" in found.hit.message


def test_the_fallback_variable_turns_what_raises_into_a_note() -> None:
    with_variable = Target(framework="torch", version="2.5.1", fallback=True)
    _, falling = rules_for([with_variable])
    assert_hits(falling, "import torch\ntorch.linalg.eigh(x)  # hit\n", [with_variable])


def test_the_registered_rule_says_the_same() -> None:
    code = "import torch\ntorch.linalg.eig(x)  # hit\n"
    assert_hits(rule("OPS680"), code, [OLD])
    assert_hits(rule("OPS681"), code.replace("# hit", ""), [OLD])


def test_no_target_no_rule() -> None:
    assert rules_for([]) == ()


def test_calls_in_functions_need_something_that_shows_a_device() -> None:
    raising, _ = rules_for([OLD])
    assert_hits(
        raising,
        """
        import torch
        def unseen(x):
            return torch.kthvalue(x, 2)
        def seen(x, device):
            return torch.kthvalue(x.to(device), 2)  # hit
        def kept(x, device):
            y = torch.linspace(0, 1, 5)
            return torch.kthvalue(y, 2)
        try:
            torch.kthvalue(x, 2)
        except NotImplementedError:
            pass
        """,
        [OLD],
    )
