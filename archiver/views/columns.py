"""A view's columns as values: name, source and type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pyiceberg.types import IcebergType

from archiver.views.kinds import ByteForm

Path: TypeAlias = tuple[str, ...]
"""The names on the way from the table to a column."""


@dataclass(frozen=True, slots=True)
class Field:
    path: Path


@dataclass(frozen=True, slots=True)
class Bytes:
    path: Path
    form: ByteForm


@dataclass(frozen=True, slots=True)
class HeaderMap:
    """The headers as a map from name to value. Of equal names the last one counts."""

    path: Path
    form: ByteForm


@dataclass(frozen=True, slots=True)
class Instant:
    """A timestamp with time zone."""

    path: Path


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a struct is null. `scalars` and `collections` are all its contents, for engines without null structs."""

    path: Path
    scalars: tuple[Path, ...]
    collections: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class MergedColumn:
    """The value of a column, or of an older column cast to `type`."""

    path: Path
    older: tuple[Path, ...]
    type: IcebergType


Source: TypeAlias = Field | Instant | Bytes | HeaderMap | IsNull | MergedColumn
"""What a view's column is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewColumn:
    """A column of a view. `field_id` is None if it has no single source column."""

    name: str
    field_id: int | None
    source: Source
    type: IcebergType
    doc: str | None = None
