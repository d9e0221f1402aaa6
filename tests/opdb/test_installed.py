"""A torch that the data do not know, played by the installed one under another version."""

import sys
from pathlib import Path

import pytest

from opdb import installed, query
from scanner.errors import UsageError

NIGHTLY = "2.16.0.dev20261201+cpu"


@pytest.fixture
def nightly(monkeypatch):
    monkeypatch.setattr(installed, "version", lambda: NIGHTLY)
    installed._declared.cache_clear()
    yield NIGHTLY
    installed._declared.cache_clear()


def test_the_version_and_the_yaml_are_found_without_importing_torch():
    import importlib.metadata

    assert installed.version() == importlib.metadata.version("torch")
    assert installed.yaml_path().name == "native_functions.yaml"


@pytest.mark.parametrize("text", [NIGHTLY, "2.16.0.dev20261201"])
def test_the_installed_version_may_be_named(nightly, text):
    assert query.resolve_release(text) == NIGHTLY


def test_another_unknown_version_may_not(nightly):
    with pytest.raises(UsageError, match="not known to opdb and not installed here"):
        query.resolve_release("2.16.0.dev20261202")


def test_facts_are_inferred_from_the_yaml(nightly):
    fact = query.lookup("aten::mm", nightly)
    assert (fact.status, fact.evidence, fact.registered) == ("native", "inferred", "kernel")
    assert fact.version == NIGHTLY
    assert "native_functions.yaml" in fact.reason
    assert fact.source.endswith("native_functions.yaml")


@pytest.mark.parametrize(
    ("op", "status"),
    [
        ("matmul", "composite"),
        ("_linalg_eigh", "unsupported"),
        ("_linalg_eigh.eigenvalues", "unsupported"),
        ("grid_sampler_3d", "native"),
        ("grid_sampler_3d.out", "composite"),
        ("add.Tensor", "native"),
    ],
)
def test_statuses_follow_the_same_rules(nightly, op, status):
    assert query.lookup(op, nightly).status == status


def test_what_is_registered_by_hand_is_taken_from_the_newest_release(nightly):
    for op, status in (("embedding_renorm_", "fallback"), ("_slow_conv2d_forward", "unsupported")):
        fact = query.lookup(op, nightly)
        assert (fact.status, fact.evidence) == (status, "inferred")
        assert "taken from torch 2.15.0" in fact.reason


def test_an_op_that_the_yaml_lacks_is_unknown(nightly):
    fact = query.lookup("no_such_op", nightly)
    assert (fact.status, fact.evidence, fact.exists) == ("unknown", None, False)


def test_lists_are_those_of_the_yaml(nightly):
    names = list(query.export(nightly))
    assert names == sorted(names)
    assert {"aten::mm", "aten::embedding_renorm_"} <= set(names)
    ops = {fact.op for fact in query.list_ops(nightly)}
    assert len(ops) == 3101
    assert set(names) <= ops


def test_a_version_that_is_not_installed_has_no_facts(nightly):
    with pytest.raises(UsageError, match=r"torch 9\.9 is not known"):
        query.lookup("mm", "9.9")


def test_without_torch_nothing_is_found(monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    assert installed.version() is None
    assert installed.yaml_path() is None
    with pytest.raises(UsageError, match="not installed here"):
        query.resolve_release("2.16.0")


@pytest.fixture
def mac(monkeypatch, tmp_path, nightly):
    """A Mac whose torch is played by a module that answers two questions of the dispatcher."""
    (tmp_path / "torch.py").write_text(_DISPATCHER, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(installed.platform, "system", lambda: "Darwin")
    installed._dispatcher.cache_clear()
    yield
    installed._dispatcher.cache_clear()


_DISPATCHER = """
class _C:
    _dispatch_get_registrations_for_dispatch_key = lambda key: ["aten::mm", "aten::linalg_svd"]
    _dispatch_dump = lambda op: {
        "aten::mm": "name: aten::mm\\nMPS: at a.cpp:1 :: (Tensor _0) -> Tensor [ boxed unboxed ]",
        "aten::linalg_svd": "name: aten::linalg_svd\\nMPS: at b.mm:2 :: (none) [ boxed ]",
    }[op]
"""


def test_on_a_mac_the_dispatcher_decides(mac, nightly):
    assert query.lookup("mm", nightly).status == "native"
    assert query.lookup("linalg_svd", nightly).status == "fallback"
    assert query.lookup("bmm", nightly).registered is None
    assert query.lookup("embedding_renorm_", nightly).registered is None
    assert "and the dispatcher" in query.lookup("mm", nightly).source
    assert query.registered(nightly) == ("linalg_svd", "mm")


def test_a_mac_without_an_answer_is_judged_by_the_yaml(monkeypatch, mac, nightly, tmp_path):
    Path(tmp_path / "torch.py").write_text("raise SystemExit(1)", "utf-8")
    fact = query.lookup("bmm", nightly)
    assert fact.status == "native"
    assert "dispatcher" not in fact.source


def test_importing_the_query_imports_nothing_heavy():
    import subprocess

    code = (
        "import sys; from opdb import query; query.lookup('mm', '2.9.1');"
        "print(sorted({'torch', 'yaml', 'lief', 'capstone', 'packaging'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
