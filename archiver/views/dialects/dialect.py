"""Engine-specific SQL of a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyiceberg.types import IcebergType

from archiver.views.columns import Path
from archiver.views.kinds import ByteForm


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """None: the engine's default. `catalog` is its name of the table's catalog."""

    catalog: str
    name: str
    namespace: Path | None = None
    temporary: bool = False


class Dialect(Protocol):
    """An engine's SQL. All arguments but names are SQL."""

    @property
    def default_catalog(self) -> str: ...

    def quoted(self, name: str) -> str: ...

    def field(self, path: Path) -> str:
        """Null if a struct on the path is null."""

    def bytes_as(self, value: str, form: ByteForm) -> str: ...

    def header_map(self, headers: str, form: ByteForm) -> str:
        """Of equal names the last header counts. Null stays null."""

    def instant(self, value: str) -> str: ...

    def cast(self, value: str, kind: IcebergType) -> str: ...

    def is_null(self, struct: str, scalars: Sequence[str], collections: Sequence[str]) -> str:
        """`scalars` and `collections` are the struct's contents."""

    def table(self, catalog: str, path: Path) -> str:
        """`path` is namespace and name."""

    def create(self, place: Place, table: Path, query: str) -> str:
        """Return CREATE OR REPLACE. Raises ConfigError if the engine has no such view."""
