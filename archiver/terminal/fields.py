"""A row's fields: in JSON, in a table, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rich.text import Text

from archiver.terminal.json_lines import error_json
from archiver.terminal.listing import NOTHING, Column, Listing

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownField(Generic[T]):
    """Without a name only people see it, without a column only machines."""

    value: Callable[[T], Any]
    name: str = ""
    column: Column | None = None
    cell: Callable[[T], str | Text] | None = None
    """Makes the cell if the value itself doesn't read well. Counts get separators, no value a dash."""


def fields_json(fields: Iterable[ShownField[T]], row: T) -> dict[str, Any]:
    return {field.name: _json(field.value(row)) for field in fields if field.name}


def fields_listing(fields: Sequence[ShownField[T]], rows: Iterable[T]) -> Listing:
    shown = [(field, field.column) for field in fields if field.column is not None]
    listing = Listing(*(column for _, column in shown))
    for row in rows:
        listing.add(*(_cell(field, row) for field, _ in shown))
    return listing


def _cell(field: ShownField[T], row: T) -> str | Text:
    if field.cell is not None:
        return field.cell(row)
    match field.value(row):
        case None:
            return NOTHING
        case int() as number:
            return f"{number:,}"
        case value:
            return str(value)


def _json(value: Any) -> Any:
    return error_json(value) if isinstance(value, Exception) else value
