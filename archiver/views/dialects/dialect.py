"""What differs between engines' SQL where a view flattens a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyiceberg.types import IcebergType

from archiver.views.columns import Path
from archiver.views.kinds import ByteForm


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an engine keeps a view, and what it calls the catalog of the table.

    Without a `namespace` the view is where the engine keeps its views by default: beside the table if it can. A
    `temporary` one is the session's.
    """

    catalog: str
    name: str
    namespace: Path | None = None
    temporary: bool = False


class Dialect(Protocol):
    """An engine's way to write names, bytes and headers. All arguments but names are SQL already."""

    @property
    def default_catalog(self) -> str:
        """What the engine usually calls the catalog of the table."""

    def quoted(self, name: str) -> str:
        """A name, quoted so that nothing in it has a meaning."""

    def field(self, path: Path) -> str:
        """The value at the end of a path that begins at a column of the table; null where a struct on it is null."""

    def bytes_as(self, value: str, form: ByteForm) -> str:
        """Bytes in a form; null where they are null."""

    def header_map(self, headers: str, form: ByteForm) -> str:
        """A list of headers as a map; of equal names the last one counts. Null where the list is null."""

    def instant(self, value: str) -> str:
        """A point in time, of a type that a view can have."""

    def cast(self, value: str, kind: IcebergType) -> str:
        """A whole number as text or as a double. Null stays null."""

    def is_null(self, struct: str, scalars: Sequence[str], collections: Sequence[str]) -> str:
        """Whether a struct is null. `scalars` and `collections` are all values in it."""

    def table(self, catalog: str, path: Path) -> str:
        """The table of an attached catalog; `path` is its namespace and its name."""

    def create(self, place: Place, table: Path, query: str) -> str:
        """The statement that makes a view of the table, or replaces it. ConfigError where the engine has none such."""
