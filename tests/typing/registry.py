"""Types of the registry's entry points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type
from uuid import UUID

from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import FileState, PartitionOffset, StateCount, TopicRow, TranslatedRange
from catalog.registry import Registry
from catalog.registry.ledger import DeclaredColumns
from schema_mapping import Assignment, LedgerState, MessageSchema, RowMapping


def topics(registry: Registry, topic_id: UUID) -> None:
    assert_type(
        registry.topics.register(cluster_id="c", topic="orders", topic_id=topic_id, table="kafka.orders"), TopicRow
    )
    assert_type(registry.topics.find(cluster_id="c", topic="orders"), TopicRow | None)
    assert_type(registry.topics.every(), tuple[TopicRow, ...])
    with registry as entered, entered.lease(registry.topics.every()[0]) as is_ours:
        assert_type(entered, Registry)
        assert_type(is_ours, bool)


def schemas(registry: Registry, topic: TopicRow, value: MessageSchema, table: ArchiveTable) -> None:
    assert_type(registry.ledger.assign(topic, DeclaredColumns(key=None, value=value), table=table), Assignment)
    assert_type(registry.ledger.load(topic), LedgerState)
    assert_type(registry.ledger.row_mapping(topic, 1), RowMapping)


def files(registry: Registry, topic: TopicRow, offsets: Mapping[int, PartitionOffset]) -> None:
    pending = registry.files.pending(topic)
    assert_type(pending, tuple[TranslatedRange, ...])
    assert_type(registry.files.staged_ends(topic), dict[int, PartitionOffset])
    assert_type(registry.files.stage(topic, pending, table_offsets=offsets).accepted, tuple[TranslatedRange, ...])
    assert_type(registry.files.confirm(topic, [range_.id for range_ in pending], commit_id=None), None)
    assert_type(registry.files.counts(topic), dict[FileState, StateCount])
