"""Modules draw the trees of their errors in docstrings."""

from __future__ import annotations

import re
from inspect import getmembers, isclass
from types import ModuleType

import pytest

from archiver import errors as of_archiver
from catalog import errors as of_catalog
from schema_mapping import errors as of_schema_mapping
from schema_mapping.errors import ContextError

_LINE = re.compile(r"^((?:│   |    )*(?:├── |└── )?)([A-Z]\w+)(.*)$")
_WIDTH = 4
"""Columns of one level."""


def drawn(module: ModuleType) -> tuple[dict[str, str | None], set[str]]:
    parents: dict[str, str | None] = {}
    retryable: set[str] = set()
    above: list[str] = []
    for line in (module.__doc__ or "").split("\n\n", 1)[1].splitlines():
        match = _LINE.match(line)
        if match is None or not (match[1] or not parents):
            continue
        del above[len(match[1]) // _WIDTH :]
        parents[match[2]] = above[-1] if above else None
        above.append(match[2])
        if match[3].lstrip().startswith("(retryable)"):
            retryable.add(match[2])
    return parents, retryable


def defined(module: ModuleType) -> dict[str, type[ContextError]]:
    return {
        name: kind
        for name, kind in getmembers(module, isclass)
        if issubclass(kind, ContextError) and kind.__module__ == module.__name__
    }


@pytest.mark.parametrize("module", [of_archiver, of_catalog, of_schema_mapping], ids=lambda module: module.__name__)
def test_the_drawn_tree_is_the_tree(module: ModuleType) -> None:
    parents, retryable = drawn(module)
    kinds = defined(module)
    assert parents.keys() == kinds.keys()
    for name, kind in kinds.items():
        (parent,) = kind.__bases__
        assert parents[name] == (parent.__name__ if parent.__name__ in kinds else None), name
    assert retryable == {name for name, kind in kinds.items() if kind.retryable}
