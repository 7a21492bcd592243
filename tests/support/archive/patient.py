"""An archive that tests injure and heal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from archiver.archive.table_files import ManifestReader
from archiver.config import Config, load_config
from archiver.storage.journal import Journal, TableJournal
from archiver.storage.objects import ObjectStore
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from tests.support.storage.foreign_deletion import delete_object


@dataclass(slots=True, kw_only=True)
class Patient:
    config: Config
    table: ArchiveTable
    journal: TableJournal
    objects: ObjectStore
    _before: dict[str, bytes] = field(default_factory=dict)
    _sql: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    @classmethod
    @contextmanager
    def of(cls, path: Path) -> Iterator[Patient]:
        config = load_config(path)
        (name,) = config.sections
        with TableCatalog(config.catalog) as catalog:
            table = catalog.adopt(config.topic(name).table, topic=name)
            assert table is not None
            yield cls(
                config=config,
                table=table,
                journal=Journal.of(config).of_table(table),
                objects=ObjectStore.of_table(table.iceberg),
            )

    def paths(self) -> list[str]:
        return sorted(file.path for file in ManifestReader().files(self.table.iceberg))

    def entries(self, prefix: str = "commit-") -> list[str]:
        assert self.journal.folder is not None
        return sorted(
            file.path for file in self.journal.objects.list(self.journal.folder) if file.name.startswith(prefix)
        )

    def read(self, path: str) -> bytes:
        return self.objects.read(path)

    def write(self, path: str, data: bytes) -> None:
        self._before.setdefault(path, self.read(path))
        self.objects.write(path, data)

    def delete(self, path: str) -> None:
        self._before.setdefault(path, self.read(path))
        delete_object(self.objects, path)

    def heal(self) -> None:
        for path, data in self._before.items():
            self.objects.write(path, data)
        with psycopg.connect(self.config.registry.dsn) as connection:
            for statement, values in reversed(self._sql):
                connection.execute(statement, values)

    def sql(self, statement: str, undo: str, *values: Any) -> None:
        with psycopg.connect(self.config.registry.dsn) as connection:
            connection.execute(statement, values)
        self._sql.append((undo, values))


@contextmanager
def healed(path: Path) -> Iterator[Patient]:
    with Patient.of(path) as patient:
        try:
            yield patient
        finally:
            patient.heal()
