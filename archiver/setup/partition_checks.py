"""Checks for partitions that hide rows from engines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from archiver.config import Config
from archiver.errors import StorageError
from archiver.setup.findings import CheckOutcome, Finding, failure
from archiver.topics.hidden_rows import hidden_rows
from catalog.iceberg.table_catalog import TableCatalog
from catalog.partitioning import PartitionTerm
from catalog.registry import RegistryReader
from schema_mapping.errors import ContextError

PARTITIONS: Final = "Partitions"


def look_at_partitions(config: Config) -> Iterator[Finding]:
    """Only truncating partitions hide rows."""
    names = {name for name in config.sections if any(_truncates(term) for term in config.topic(name).partition_terms)}
    if not names:
        return
    count = 0
    try:
        with RegistryReader(config.registry.dsn) as registry, TableCatalog(config.catalog) as catalog:
            rows = [row for row in registry.topics.every() if row.topic in names]
            for row in rows:
                if config.table_of(row.topic) != row.table or (table := catalog.load(row)) is None:
                    continue
                for detail in hidden_rows(table):
                    count += 1
                    yield Finding(
                        part=PARTITIONS, subject=f"topic {row.topic}", outcome=CheckOutcome.WARNING, detail=detail
                    )
    except StorageError as error:
        yield failure(PARTITIONS, error)
        return
    except ContextError:
        return
    if not count:
        yield Finding(part=PARTITIONS, detail="engines find all rows by truncated columns")


def _truncates(term: PartitionTerm) -> bool:
    return term.transform.startswith("truncate")
