"""Ids and names of a version's columns, by path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from schema_mapping.columns.paths import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnId:
    """`cut`: its struct is kept whole in `__unrecognized__`."""

    path: Path
    field_id: int
    name: str
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnIds:
    """Columns by ascending path. Fields without one are unknown fields to the kernel."""

    columns: tuple[ColumnId, ...]

    def by_path(self) -> dict[Path, ColumnId]:
        return {column.path: column for column in self.columns}

    def to_json(self) -> list[list[Any]]:
        """`[path, field id, name]`, with `true` for cut columns."""
        return [
            [list(column.path), column.field_id, column.name, *([True] if column.cut else [])]
            for column in self.columns
        ]

    @classmethod
    def from_json(cls, data: list[list[Any]]) -> Self:
        return cls(
            columns=tuple(
                ColumnId(path=tuple(path), field_id=field_id, name=name, cut=bool(cut))
                for path, field_id, name, *cut in data
            )
        )
