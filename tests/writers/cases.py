"""The cases that writers are given, and what they wrote, as kept in tests/vectors/writers."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

VECTORS: Final = Path(__file__).parents[1] / "vectors" / "writers"
Written: TypeAlias = list[list[bytes | None]]
"""The bytes of each value of each case. None for a value that a library refuses."""


class Case(NamedTuple):
    schema: str
    values: tuple[bytes, ...]


@cache
def read_cases(name: str) -> list[Case]:
    """Return the kept cases of a format."""
    return [Case(schema, tuple(map(bytes.fromhex, values))) for schema, values in _kept(name)["cases"]]


def written_by(name: str, writer: str) -> Written:
    """Return what a writer made of the cases of a format."""
    return [
        [None if value is None else bytes.fromhex(value) for value in case] for case in _kept(name)["written"][writer]
    ]


def writers_of(name: str) -> list[str]:
    return list(_kept(name)["written"])


def keep(name: str, cases: list[Case], written: dict[str, Written]) -> None:
    """Keep the cases, and what each writer wrote. Answers of further writers to the same cases stay."""
    path = _path(name)
    before = read_kept(name) if path.exists() and read_cases(name) == cases else {"written": {}}
    texts = {
        writer: [[None if value is None else value.hex() for value in case] for case in answers]
        for writer, answers in written.items()
    }
    kept = {
        "cases": [[case.schema, [value.hex() for value in case.values]] for case in cases],
        "written": dict(sorted({**before["written"], **texts}.items())),
    }
    VECTORS.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress(json.dumps(kept, separators=(",", ":")).encode(), preset=9 | lzma.PRESET_EXTREME))


def _path(name: str) -> Path:
    return VECTORS / f"{name}.json.xz"


@cache
def _kept(name: str) -> dict[str, Any]:
    return read_kept(name)


def read_kept(name: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(lzma.decompress(_path(name).read_bytes()))
    return kept
