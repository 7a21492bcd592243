"""pyiceberg's transaction, without a deep copy of the table's metadata at each look at it: some 14 a commit."""

from __future__ import annotations

from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate


class LightTransaction(Transaction):
    """A transaction whose metadata is made once for each change that is staged. Whoever looks at it only reads."""

    def __init__(self, table: Table) -> None:
        super().__init__(table, autocommit=False)
        self._seen: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """The table's metadata with what was staged so far."""
        if self._seen is None or self._seen[0] is not self._updates:
            self._seen = (self._updates, super().table_metadata)
        return self._seen[1]
