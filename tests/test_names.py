"""Unique class names outside the tests; at most seven parameters."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
ROOTS: Final = ("archiver", "catalog", "schema_mapping", "bench")
MOST_PARAMETERS: Final = 7


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    paths = sorted(path for root in ROOTS for path in (ROOT / root).rglob("*.py") if not path.name.endswith("_pb2.py"))
    return tuple((path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())) for path in paths)


def long_signatures() -> Iterator[str]:
    for path, module in modules():
        if not path.startswith("archiver/cli/"):
            for node in ast.walk(module):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _parameters(node) > MOST_PARAMETERS:
                    yield f"{path}:{node.name}"


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_class_names_occur_once() -> None:
    paths: dict[str, list[str]] = defaultdict(list)
    for path, module in modules():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                paths[node.name].append(path)
    assert {name: homes for name, homes in paths.items() if len(homes) > 1} == {}


def test_functions_take_seven_parameters() -> None:
    assert sorted(long_signatures()) == []
