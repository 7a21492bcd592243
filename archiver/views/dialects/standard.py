"""What most engines write alike: names in double quotes, dots between them, null structs that are null."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.types import IcebergType, StringType

from archiver.views.columns import Path


class StandardSql:
    """The parts of a dialect in which engines follow standard SQL."""

    default_catalog = "lake"
    text_type = "varchar"

    def quoted(self, name: str) -> str:
        """The name in double quotes."""
        return '"' + name.replace('"', '""') + '"'

    def field(self, path: Path) -> str:
        """The names with dots between them."""
        return ".".join(map(self.quoted, path))

    def instant(self, value: str) -> str:
        """As it is."""
        return value

    def cast(self, value: str, kind: IcebergType) -> str:
        """The type's name is the engine's."""
        return f"CAST({value} AS {self.text_type if isinstance(kind, StringType) else 'double'})"

    def is_null(self, struct: str, scalars: Sequence[str], collections: Sequence[str]) -> str:
        """The struct itself says so."""
        del scalars, collections
        return f"{struct} IS NULL"

    def table(self, catalog: str, path: Path) -> str:
        """A schema has one name, which has the dots of a nested namespace in it."""
        return self.field((catalog, ".".join(path[:-1]), path[-1]))
