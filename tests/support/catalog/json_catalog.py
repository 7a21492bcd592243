"""A catalog that reads and writes metadata.json with every commit."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from catalog.iceberg.append import Attempt
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Backoff, Committed, commit
from catalog.iceberg.expiry import SnapshotRetention
from catalog.iceberg.housekeeping import housekeep
from catalog.model import TranslatedRange, new_id
from tests.support.catalog.memory import TOPIC, MemoryCatalog


class JsonCatalog:
    def __init__(self, folder: Path) -> None:
        first = MemoryCatalog(folder)
        self.io = first.io
        self.path = folder / "metadata.json"
        self._write(first.metadata)

    def load(self) -> ArchiveTable:
        metadata = TableMetadataUtil.parse_raw(self.path.read_text())
        table = Table(("kafka", "orders"), metadata, str(self.path), self.io, catalog=None)  # type: ignore[arg-type]
        return ArchiveTable(topic=TOPIC, iceberg=table)

    def commit(self, ranges: list[TranslatedRange], retention: SnapshotRetention) -> None:
        existing = self.load()
        done = commit(
            load=self.load, send=self._send, ranges=ranges, change=None, commit_id=new_id(), backoff=Backoff()
        )
        assert isinstance(done, Committed)
        housekeep(existing, retention, load=self.load, send=self._update)

    def _send(self, attempt: Attempt) -> None:
        self._update(attempt.table, attempt.requirements, attempt.updates)

    def _update(
        self, table: ArchiveTable, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> TableMetadata:
        base = self.load().iceberg.metadata
        for requirement in requirements:
            requirement.validate(base)
        after = update_table_metadata(base, updates, enforce_validation=True)
        self._write(after)
        return after

    def _write(self, metadata: TableMetadata) -> None:
        self.path.write_text(metadata.model_dump_json(by_alias=True))
