"""Ids and names of one schema version's columns, by path: what the ledger gives to a mapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from schema_mapping.columns.paths import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedColumn:
    """A column's path, field id and name; `cut` where a message is kept whole in its `__unrecognized__`."""

    path: Path
    field_id: int
    name: str
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IdAssignment:
    """The columns of a key or value, by ascending path. A field without a column is an unknown field to the kernel."""

    columns: tuple[AssignedColumn, ...]

    def by_path(self) -> dict[Path, AssignedColumn]:
        """The columns by their path."""
        return {column.path: column for column in self.columns}

    def to_json(self) -> list[list[Any]]:
        """A JSON array of `[path, field id, name]`, with a fourth member `true` where the column is cut."""
        return [
            [list(column.path), column.field_id, column.name, *([True] if column.cut else [])]
            for column in self.columns
        ]

    @classmethod
    def from_json(cls, data: list[list[Any]]) -> Self:
        """The assignment that `to_json` gave."""
        return cls(
            columns=tuple(
                AssignedColumn(path=tuple(path), field_id=field_id, name=name, cut=bool(cut))
                for path, field_id, name, *cut in data
            )
        )
