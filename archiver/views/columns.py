"""A view's columns as values."""

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
    """Of equal names the last header counts."""

    path: Path
    form: ByteForm


@dataclass(frozen=True, slots=True)
class Instant:
    path: Path


@dataclass(frozen=True, slots=True)
class StructIsNull:
    """`scalars` and `collections` are the contents, for engines without null structs."""

    path: Path
    scalars: tuple[Path, ...]
    collections: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class MergedColumn:
    path: Path
    older: tuple[Path, ...]
    type: IcebergType


Source: TypeAlias = Field | Instant | Bytes | HeaderMap | StructIsNull | MergedColumn
"""What a view's column is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewColumn:
    """`field_id` is None without a single source column."""

    name: str
    field_id: int | None
    source: Source
    type: IcebergType
    doc: str | None = None
