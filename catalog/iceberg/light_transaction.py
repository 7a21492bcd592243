"""pyiceberg's transaction without a deep copy of metadata at each access (14 per commit)."""

from __future__ import annotations

from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate


class LightTransaction(Transaction):
    """Callers must only read the metadata."""

    def __init__(self, table: Table) -> None:
        super().__init__(table, autocommit=False)
        self._seen: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        if not self._updates:
            metadata: TableMetadata = self._table.metadata
            return metadata
        if self._seen is None or self._seen[0] is not self._updates:
            self._seen = (self._updates, super().table_metadata)
        return self._seen[1]
