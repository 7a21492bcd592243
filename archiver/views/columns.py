"""A view's columns as values: each with its name, what it is made of, and its type. Dialects write them as SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pyiceberg.types import IcebergType

from archiver.views.kinds import ByteForm

Path: TypeAlias = tuple[str, ...]
"""The names on the way from the table to a column."""


@dataclass(frozen=True, slots=True)
class Field:
    """A value as the table has it."""

    path: Path


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes in a form."""

    path: Path
    form: ByteForm


@dataclass(frozen=True, slots=True)
class HeaderMap:
    """The headers as a map from name to value in a form. Of equal names the last one counts."""

    path: Path
    form: ByteForm


@dataclass(frozen=True, slots=True)
class Instant:
    """A point in time, with its zone."""

    path: Path


@dataclass(frozen=True, slots=True)
class StructIsNull:
    """Whether a struct is null.

    `scalars` and `collections` (lists and maps) are all that is in it: engines that know no null structs ask them.
    """

    path: Path
    scalars: tuple[Path, ...]
    collections: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class MergedColumn:
    """A value of a column, or else the value of an older column of another type, cast to `type`."""

    path: Path
    older: tuple[Path, ...]
    type: IcebergType


Source: TypeAlias = Field | Instant | Bytes | HeaderMap | StructIsNull | MergedColumn
"""What a view's column is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewColumn:
    """A column of a view. `field_id` is that of the table's column; None where there is no single one."""

    name: str
    field_id: int | None
    source: Source
    type: IcebergType
    doc: str | None = None
