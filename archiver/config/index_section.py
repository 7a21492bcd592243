"""`[index]`, and a topic's `index`: the columns in the term store."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator

from archiver.config.quantities import Bytes
from archiver.config.section import Section

MOST_INDEXED: Final = 32
HEADER: Final = "header:"
_PARTS: Final = ("key.", "val.")

IndexKind: TypeAlias = Literal["terms", "bitmap"]


class IndexedValue(Section):
    """`key`, `header:NAME`, or the path of a column below `key` or `val`."""

    column: str = Field(min_length=1)
    kind: IndexKind = "terms"

    @field_validator("column")
    @classmethod
    def _is_known(cls, column: str) -> str:
        is_path = column.startswith(_PARTS) and not column.endswith(".") and ".." not in column
        if column == "key" or is_path or (column.startswith(HEADER) and column != HEADER):
            return column
        word = column.partition(":")[0].partition(".")[0]
        near = get_close_matches(word, ("key", "header", "val"), 1)
        hint = f"; did you mean {column.replace(word, near[0], 1)!r}?" if near and near[0] != word else ""
        raise ValueError(f"{column!r} can't be indexed: write key, header:NAME, or a column below key. or val.{hint}")


def _entries(value: object) -> object:
    """Take a text for an entry's column; refuse repeated columns."""
    if not isinstance(value, (list, tuple)):
        raise ValueError(f'{value!r} is no list of columns: write ["key", "header:trace", "val.customer.id"]')  # noqa: TRY004 - pydantic passes on only ValueErrors
    entries: list[Any] = [{"column": entry} if isinstance(entry, str) else entry for entry in value]
    names = [_name(entry) for entry in entries]
    twice = sorted({str(name) for name in names if name is not None and names.count(name) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice)}: a column has one index")
    return tuple(entries)


def _name(entry: object) -> object:
    return entry.get("column") if isinstance(entry, dict) else getattr(entry, "column", None)


IndexedValues = Annotated[tuple[IndexedValue, ...], BeforeValidator(_entries), Field(max_length=MOST_INDEXED)]


class IndexSection(Section):
    """`location` is the folder of runs, outside of all tables. A build or merge holds `memory` of terms."""

    location: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9+.-]*://[^/].*[^/]$|^file:///.*[^/]$",
        description="the place of an index: write s3://BUCKET/PREFIX, without / at its end",
    )
    memory: Bytes = Field(default=128 << 20, ge=8 << 20, le=16 << 30)
