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
    """An engine's place for a view (None: its default), and its name for the table's catalog."""

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
        """Return the value at a path from a column; null if a struct on it is null."""

    def bytes_as(self, value: str, form: ByteForm) -> str: ...

    def header_map(self, headers: str, form: ByteForm) -> str:
        """Convert a list of headers to a map; of equal names the last one counts. Null stays null."""

    def instant(self, value: str) -> str: ...

    def cast(self, value: str, kind: IcebergType) -> str: ...

    def is_null(self, struct: str, scalars: Sequence[str], collections: Sequence[str]) -> str:
        """Whether a struct is null. `scalars` and `collections` are its contents."""

    def table(self, catalog: str, path: Path) -> str:
        """Return the table of an attached catalog; `path` is namespace and name."""

    def create(self, place: Place, table: Path, query: str) -> str:
        """Return the CREATE OR REPLACE statement. Raises ConfigError if the engine has no such view."""
