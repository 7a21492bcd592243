"""Deletes runs of the index that may have values of erased records."""

from __future__ import annotations

from collections import defaultdict

from archiver.errors import StorageError
from archiver.index.removal import RunRemoval
from archiver.index.store import RunStore
from archiver.upkeep.erase.copies import Spans
from archiver.upkeep.erase.topic import TopicErasure


def erase_terms(
    work: TopicErasure, named: Spans, *, begun_by_ms: int
) -> tuple[dict[str, StorageError], tuple[str, ...]]:
    """Delete runs begun before the records left the table, at offsets that may have lost records.

    Returns failures by object, and ids of builds that may still write such a run.
    """
    store = _store(work)
    if store is None:
        return {}, ()
    removal = RunRemoval(topic=work.topic, registry=work.registry, store=store)
    failures, builds = removal.erase(
        _offsets_without_rows(work, named), begun_by_ms=begun_by_ms, grace=work.config.archive.orphan_grace
    )
    return {str(error.context.get("file", "index")): error for error in failures}, builds


def _offsets_without_rows(work: TopicErasure, named: Spans) -> Spans:
    """Runs may still have terms of these."""
    spans = defaultdict[int, list[tuple[int, int]]](list)
    for source in (named, work.registry.erasures.offsets(work.topic)):
        for partition, ranges in source.items():
            spans[partition] += ranges
    for partition, first in work.catalog.reload(work.table).first_offsets.items():
        spans[partition].append((0, first))
    for acceptance in work.registry.rows.accepted_offsets(work.topic):
        spans[acceptance.partition] += acceptance.spans
    return spans


def _store(work: TopicErasure) -> RunStore | None:
    """Without a folder if the index was configured before."""
    table = work.table
    configured = RunStore.of(work.config, work.topic.table, table.uuid, table_location=table.location)
    if configured is not None or not work.registry.index.folders(work.topic):
        return configured
    return RunStore.for_deletion(work.config)
