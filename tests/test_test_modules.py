"""Tests share through `tests/support` only."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TOPICS = {
    "archive",
    "catalog",
    "clients",
    "engine",
    "intake",
    "kafka",
    "maintenance",
    "pruning",
    "schemas",
    "servers",
    "storage",
    "terminal",
    "timing",
}
WORKBENCHES = {"chaos", "clients", "conformance", "fault", "fuzz", "producers", "typing", "vectors", "writers"}
"""Folders with programs or declarations of their own, which aren't shared helpers."""

SERVERS = {"chaos", "integration", "fault", "interop"}
"""Folders with tests that need servers."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def wrong_imports(source: ast.Module) -> list[str]:
    wrong = []
    for node in ast.walk(source):
        match node:
            case ast.ImportFrom(module=module, names=names):
                if any(name.name == "*" for name in names):
                    wrong.append(f"from {module} import *")
                imported = [f"{module or ''}.{name.name}" for name in names]
            case ast.Import(names=names):
                imported = [name.name for name in names]
            case _:
                continue
        wrong += [name for name in imported if any(part.startswith("test_") for part in name.split(".")[:-1])]
        wrong += [name for name in imported if name.rpartition(".")[2].startswith("test_") and name not in wrong]
    return wrong


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_module_is_imported(path: Path) -> None:
    assert wrong_imports(parsed(path)) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from tests.a.test_b import c", ["tests.a.test_b.c"]),
        ("from tests.a import test_b", ["tests.a.test_b"]),
        ("import tests.test_b", ["tests.test_b"]),
        ("from tests.a import *", ["from tests.a import *"]),
        ("from tests.a.b import test_data, c", ["tests.a.b.test_data"]),
        ("from tests.a.b import c", []),
    ],
)
def test_such_imports_are_found(line: str, found: list[str]) -> None:
    assert wrong_imports(ast.parse(line)) == found


def is_at_home(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    if name.startswith("test_") or name in ("__init__.py", "conftest.py"):
        return True
    top, *topic = folder.split("/")
    return top in WORKBENCHES or (top == "support" and len(topic) == 1 and topic[0] in TOPICS)


def test_helpers_lie_under_their_topic() -> None:
    modules = (path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py"))
    assert [module for module in modules if not is_at_home(module)] == []


def test_every_helper_says_what_it_is_for() -> None:
    helpers = sorted((TESTS / "support").glob("*/*.py"))
    assert [str(path) for path in helpers if not ast.get_docstring(parsed(path))] == []


def missing_helpers(source: ast.Module) -> list[str]:
    """Return missing imported helpers: tests that need servers would fail late."""
    modules = [node.module for node in ast.walk(source) if isinstance(node, ast.ImportFrom) and node.module]
    paths = {name: TESTS.parent / name.replace(".", "/") for name in modules if name.startswith("tests.")}
    return [name for name, path in paths.items() if not (path.is_dir() or path.with_suffix(".py").is_file())]


@pytest.mark.parametrize("root", [TESTS, TESTS.parent / "bench"], ids=["tests", "bench"])
def test_helpers_that_are_imported_are_there(root: Path) -> None:
    missing = {str(path): missing_helpers(parsed(path)) for path in sorted(root.rglob("*.py"))}
    assert {path: names for path, names in missing.items() if names} == {}


def test_a_missing_helper_is_found() -> None:
    lines = (
        "from tests.support.kafka.logs import a\nfrom tests.support.kafka import logs\nfrom tests.support.gone import b"
    )
    assert missing_helpers(ast.parse(lines)) == ["tests.support.gone"]


def test_every_helper_is_used() -> None:
    sources = [path for root in (TESTS, TESTS.parent / "bench") for path in root.rglob("*.py")]
    texts = {path: path.read_text() for path in sources}
    for helper in sorted((TESTS / "support").glob("*/*.py")):
        name = f"tests.support.{helper.parent.name}"
        used = (f"{name}.{helper.stem}", f"from {name} import {helper.stem}")
        assert any(word in text for path, text in texts.items() if path != helper for word in used), helper


def marks(node: ast.AST) -> set[str]:
    return {
        child.attr
        for child in ast.walk(node)
        if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Attribute) and child.value.attr == "mark"
    }


def marks_of_all(source: ast.Module) -> set[str]:
    assigned = [node for node in source.body if isinstance(node, ast.Assign)]
    values = [node.value for node in assigned if "pytestmark" in map(ast.unparse, node.targets)]
    return set().union(*map(marks, values))


def test_marks_of_single_tests_are_not_those_of_all() -> None:
    source = ast.parse(
        "pytestmark = [pytest.mark.interop, pytest.mark.timeout(9)]\n@pytest.mark.slow\ndef test() -> None: ..."
    )
    assert marks_of_all(source) == {"interop", "timeout"}
    assert marks(source) == {"interop", "timeout", "slow"}


def test_what_needs_servers_lies_where_it_is_looked_for() -> None:
    """`make integration` collects only these folders, `make unit` skips the ones with nothing else."""
    modules = {path.relative_to(TESTS): parsed(path) for path in TESTS.rglob("test_*.py")}
    elsewhere = [
        path for path, module in modules.items() if "integration" in marks(module) and path.parts[0] not in SERVERS
    ]
    assert elsewhere == []
    for mark in ("integration", "interop"):
        own = {path: module for path, module in modules.items() if path.parts[0] == mark}
        assert [path for path, module in own.items() if mark not in marks_of_all(module)] == []


@pytest.mark.parametrize(
    ("path", "home"),
    [
        ("support/kafka/logs.py", True),
        ("archiver/conftest.py", True),
        ("archiver/wire/test_gap.py", True),
        ("fault/soak/deck.py", True),
        ("archiver/wire/batches.py", False),
        ("support/logs.py", False),
        ("support/various/logs.py", False),
        ("property/messages.py", False),
    ],
)
def test_helpers_elsewhere_are_found(path: str, home: bool) -> None:
    assert is_at_home(path) is home
