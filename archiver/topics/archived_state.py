"""The archived state, while Kafka doesn't answer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from archiver.commit.table_check import TableCheck, check_archive
from archiver.config import TopicConfig
from archiver.topics.catalog_pool import CatalogPool
from archiver.topics.hidden_rows import hidden_rows
from archiver.topics.owner_status import open_erasures, owner_remarks
from archiver.topics.state import PartitionStatus, TopicStatus
from archiver.topics.table_identity import identified
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.overview import TopicOverview
from schema_mapping.errors import ContextError

if TYPE_CHECKING:
    from archiver.storage.formats import SegmentFormats


class ArchivedState:
    def __init__(self, *, registry: Registry, catalogs: CatalogPool, formats: SegmentFormats | None = None) -> None:
        self._registry = registry
        self._catalogs = catalogs
        self._formats = formats

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({row.topic for row in self._registry.topics.every()}))

    def topics(self, configs: Sequence[TopicConfig]) -> list[TopicStatus]:
        """Unreadable tables are problems of their topics, never raised."""
        tables = {(config.name, config.table): config for config in configs}
        rows = [row for row in self._registry.topics.every() if (row.topic, row.table) in tables]
        overviews = self._registry.topics.overview(rows)
        chores = self._registry.chores.of_topics(rows) if rows else {}
        topics = [_Known(tables[row.topic, row.table], row, overviews[row.id]) for row in rows]
        statuses: list[TopicStatus] = []
        for topic, answer in self._catalogs.each(topics, self._look, threading.Event()):
            try:
                status = answer.result()
            except ContextError as error:
                status = replace(known_status(topic.config, topic.overview), problem=error)
            statuses.append(replace(status, chores=chores.get(topic.row.id, ())))
        return statuses

    def _look(self, known: _Known, catalog: TableCatalog) -> TopicStatus:
        row, registry = known.row, self._registry
        load = partial(identified, row, registry, partial(catalog.load, row))
        checked = check_archive(row, registry, load, formats=self._formats)
        waiting = Counter(part.partition for part in self._registry.files.pending(known.row))
        return with_check(
            replace(
                known_status(known.config, known.overview),
                partitions=_partitions(checked.table, known.overview, waiting),
                problem=checked.error,
            ),
            checked,
            known.config,
            known.overview,
        )


@dataclass(frozen=True, slots=True)
class _Known:
    config: TopicConfig
    row: TopicRow
    overview: TopicOverview


def known_status(config: TopicConfig, overview: TopicOverview) -> TopicStatus:
    return TopicStatus(
        topic=config.name,
        table=config.table,
        files=overview.counts,
        lost_offsets=overview.lost_offsets,
        gone=overview.gone,
        holds=overview.holds + config.hold,
        recognition=overview.recognition,
        uncounted_rows=overview.uncounted_rows,
    )


def with_check(status: TopicStatus, checked: TableCheck, config: TopicConfig, overview: TopicOverview) -> TopicStatus:
    return replace(
        status,
        holes=checked.holes,
        altered=checked.altered,
        uncompared_rows=checked.uncompared_rows,
        unseen_before=checked.unseen_before,
        erasures=open_erasures(overview.erasures, checked.table),
        owner_remarks=owner_remarks(checked.table, config.snapshot_retention),
        hidden_rows=hidden_rows(checked.table) if checked.table else (),
    )


def _partitions(
    table: ArchiveTable | None, overview: TopicOverview, waiting: Mapping[int, int]
) -> tuple[PartitionStatus, ...]:
    offsets = table.offsets if table else {}
    first = table.first_offsets if table else {}
    staged = overview.staged_ends
    return tuple(
        PartitionStatus(
            partition=partition,
            archived_to=offsets[partition].next_offset if partition in offsets else None,
            first_offset=first.get(partition),
            staged_to=staged[partition].next_offset if partition in staged else None,
            staged_files=waiting.get(partition, 0),
            lag_records=None,
        )
        for partition in sorted(offsets.keys() | staged.keys())
    )
