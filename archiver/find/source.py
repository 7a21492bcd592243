"""A topic to search, at one snapshot."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from archiver.archive import file_columns
from archiver.archive.open_file import TopicStorage
from archiver.archive.plan import TopicSnapshot
from archiver.archive.table_files import TableFile, TableFiles
from archiver.archive.topic_archive import TopicArchive
from archiver.find.file_facts import FileFacts
from archiver.find.index_facts import IndexFacts
from archiver.find.query import FindQuery
from archiver.find.report import FindReport
from archiver.records.block_facts import raw_key_id
from archiver.records.metadata_terms import with_metadata
from archiver.records.selection import check_partitions
from archiver.records.table_columns import TableColumn, table_columns
from archiver.records.unjudged import UnjudgedRecords
from archiver.records.where import Where
from archiver.records.where_syntax import ColumnIs
from archiver.storage.metered import ReadMeter
from archiver.storage.objects import ObjectStore
from catalog.errors import RegistryError
from catalog.value_terms import Lookup
from schema_mapping.columns.ledger import LedgerState

_LOG: Final = logging.getLogger(__name__)
Opens = Callable[[Callable[[TopicArchive], frozenset[int]]], TopicArchive]
"""Opens a topic's archive with the bounds of the columns that the argument returns."""
FAR: Final = sys.maxsize
"""Later than any time."""


@dataclass(slots=True)
class FileQueue:
    """Files by the best possible time of their records, negated if the newest comes first."""

    files: TableFiles
    rows: npt.NDArray[np.int64]
    bests: npt.NDArray[np.int64]
    _at: int = 0

    def __len__(self) -> int:
        return len(self.rows) - self._at

    @property
    def best(self) -> int:
        return int(self.bests[self._at])

    def take(self) -> TableFile:
        row = self.rows[self._at : self._at + 1]
        self._at += 1
        return next(self.files.pick(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSource:
    archive: TopicArchive
    snapshot: TopicSnapshot
    query: FindQuery
    facts: FileFacts
    index: IndexFacts
    storage: TopicStorage
    unjudged: UnjudgedRecords

    @classmethod
    def open(cls, query: FindQuery, opens: Opens, report: FindReport) -> FindSource:
        """Raise CatalogError, and ConfigError for unknown columns and partitions."""
        opened: list[tuple[FindQuery, FileFacts]] = []

        def bounded(archive: TopicArchive) -> frozenset[int]:
            where = query.where
            if where.metadata_names:
                where = with_metadata(where, archive.metadata(where.metadata_names))
            opened.append((replace(query, where=where), _facts(where, archive)))
            return opened[-1][1].bounded

        archive = opens(bounded)
        check_partitions(archive, query.partitions)
        return cls._of(archive, *opened[-1], report)

    def refreshed(self, report: FindReport) -> FindSource | None:
        fresh = self.archive.refresh()
        if fresh.snapshot_id == self.snapshot.snapshot_id:
            return None
        return self._of(self.archive, self.query, self.facts, report)

    def files(self, report: FindReport) -> FileQueue:
        files = self.snapshot.files
        left, ruled_out = self.facts.possible(
            self.query.where, files.columns, self.snapshot.first_offsets, partial(self._absent, report), self.index
        )
        report.add(files=len(files))
        report.rule_out(files=ruled_out)
        if self.query.oldest_first:
            return FileQueue(files, left, np.full(len(left), -FAR))
        latest = pc.fill_null(files.columns[file_columns.LATEST], FAR).to_numpy()[left]
        order = np.argsort(-latest, kind="stable")
        return FileQueue(files, left[order], -latest[order])

    def _absent(
        self, report: FindReport, paths: Sequence[str], lookups: Sequence[Lookup]
    ) -> Mapping[str, Sequence[bool]]:
        if report.registry_error is not None:
            return {}
        try:
            return self.archive.absent_values(paths, lookups)
        except RegistryError as error:
            _LOG.info("%s: the registry's values of files can't be used: %s", self.archive.topic, error)
            report.registry_error = str(error)
            return {}

    @property
    def columns(self) -> Mapping[ColumnIs, TableColumn]:
        return self.facts.columns

    @classmethod
    def _of(cls, archive: TopicArchive, query: FindQuery, facts: FileFacts, report: FindReport) -> FindSource:
        snapshot = archive.snapshot
        return cls(
            archive=archive,
            snapshot=snapshot,
            query=query,
            facts=facts,
            index=IndexFacts.of(query.where, facts, archive, report),
            storage=_metered(snapshot.storage, report.reads),
            unjudged=UnjudgedRecords(),
        )


def _facts(where: Where, archive: TopicArchive) -> FileFacts:
    ledger: LedgerState | None = archive.ledger() if where.columns else None
    columns = {} if ledger is None else table_columns(where, archive.schema, ledger)
    key_id = raw_key_id(archive.schema) if "key" in where.parts else None
    return FileFacts.of(archive.schema, columns, key_id, ledger)


def _metered(storage: TopicStorage, meter: ReadMeter) -> TopicStorage:
    objects: ObjectStore = replace(storage.objects, meter=meter)
    return TopicStorage.of_store(
        objects, storage.formats, storage.mappings, coercion=storage.coercion, spill=storage.spill
    )
