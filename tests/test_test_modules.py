"""Tests share through modules of their own: no test module is imported by another, and nothing by `*`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def wrong_imports(source: str) -> list[str]:
    wrong = []
    for node in ast.walk(ast.parse(source)):
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
    assert wrong_imports(path.read_text()) == []


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
    assert wrong_imports(line) == found
