"""SQL that most engines share."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.types import IcebergType, StringType

from archiver.views.columns import Path


class StandardSql:
    default_catalog = "lake"
    text_type = "varchar"

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def field(self, path: Path) -> str:
        return ".".join(map(self.quoted, path))

    def instant(self, value: str) -> str:
        return value

    def cast(self, value: str, kind: IcebergType) -> str:
        return f"CAST({value} AS {self.text_type if isinstance(kind, StringType) else 'double'})"

    def is_null(self, struct: str, scalars: Sequence[str], collections: Sequence[str]) -> str:
        del scalars, collections
        return f"{struct} IS NULL"

    def table(self, catalog: str, path: Path) -> str:
        """A nested namespace is one schema name with dots."""
        return self.field((catalog, ".".join(path[:-1]), path[-1]))
