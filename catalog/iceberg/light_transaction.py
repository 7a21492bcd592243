"""pyiceberg's transaction, without a deep copy of the table's metadata at each access; a commit made 14 copies.

What is read before the first change is the table's own metadata: an append whose columns stay makes no copy at all.
"""

from __future__ import annotations

from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate


class LightTransaction(Transaction):
    """A transaction that computes its metadata once for each staged change. Callers must only read it.

    Before the first change it is the table's own.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table, autocommit=False)
        self._seen: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """The table's metadata with the changes that were staged so far."""
        if not self._updates:
            metadata: TableMetadata = self._table.metadata
            return metadata
        if self._seen is None or self._seen[0] is not self._updates:
            self._seen = (self._updates, super().table_metadata)
        return self._seen[1]
