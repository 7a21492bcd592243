"""Changes of tables that pyiceberg makes, without its catalogs."""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata, TableMetadataV1
from pyiceberg.table.update import TableUpdate, update_table_metadata


def created(updates: tuple[TableUpdate, ...]) -> TableMetadata:
    empty = TableMetadataV1.model_construct(last_column_id=-1, schema=Schema())
    return update_table_metadata(empty, updates, enforce_validation=True)


def updates_of(table: Table, change: Callable[[Transaction], object]) -> tuple[TableUpdate, ...]:
    transaction = Transaction(table, autocommit=False)
    change(transaction)
    return transaction._updates
