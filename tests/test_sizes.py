"""Modules have a readable size."""

from __future__ import annotations

from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
MOST = 450
MEDIAN = 150
GENERATED = ("options_pb2.py",)


def sizes() -> dict[str, int]:
    roots = ("archiver", "catalog", "schema_mapping")
    paths = (path for root in roots for ending in ("py", "pyx") for path in (ROOT / root).rglob(f"*.{ending}"))
    return {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for path in paths
        if path.name not in (*GENERATED, "__init__.py")
    }


def test_no_module_is_a_giant() -> None:
    assert {path: lines for path, lines in sizes().items() if lines > MOST} == {}


def test_most_modules_are_small() -> None:
    assert median(sizes().values()) <= MEDIAN
