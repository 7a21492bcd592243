"""Erases terms: runs of the index that may have values of erased records are written again without these."""

from __future__ import annotations

from archiver.errors import StorageError
from archiver.index.removal import RunRemoval
from archiver.index.store import RunStore
from archiver.index.trimming import RunTrim
from archiver.upkeep.erase.copies import Spans
from archiver.upkeep.erase.topic import TopicErasure
from catalog.term_runs import GoneOffsets


def erase_terms(
    work: TopicErasure, named: Spans, *, begun_by_ms: int
) -> tuple[dict[str, StorageError], tuple[str, ...]]:
    """Delete runs with terms of offsets without rows: named, erased, retired, or accepted as removed.

    The records had left the table by `begun_by_ms`. Returns failures by object, and the ids of builds that may still
    write such a run.
    """
    store = _store(work)
    if store is None:
        return {}, ()
    table = work.catalog.reload(work.table)
    retired = work.registry.retention.proven_first_offsets(work.topic, table.first_offsets)
    # After the table: builds that begin later leave retired records out.
    now_ms = work.registry.index.now_ms(work.topic)
    spans = [(partition, *span) for partition, several in named.items() for span in several]
    spans += [(partition, 0, first) for partition, first in retired.items()]
    gone = [GoneOffsets(*span, now_ms) for span in spans]
    removal = RunRemoval(topic=work.topic, registry=work.registry, store=store)
    trim = RunTrim(topic=work.topic, registry=work.registry, store=store, memory=work.config.index.memory)
    failures, builds = removal.erase(
        gone, begun_by_ms=begun_by_ms, trim=lambda: trim.run(gone, lambda: work.files(table))
    )
    return {str(error.context.get("file", "index")): error for error in failures}, builds


def _store(work: TopicErasure) -> RunStore | None:
    """Without a folder if the index was configured before."""
    table = work.table
    configured = RunStore.of(work.config, work.topic.table, table.uuid, table_location=table.location)
    if configured is not None or not work.registry.index.folders(work.topic):
        return configured
    return RunStore.for_deletion(work.config)
