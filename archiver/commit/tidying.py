"""Trim a topic's registry rows, sum up its journal, pack its audit trail (docs/adr/0028)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from archiver.audit.trail import AuditTrail
from archiver.commit.commit_staged import StagedTopic
from archiver.storage.journal import TableJournal
from archiver.storage.journal_sums import JournalSums
from catalog.registry import Registry
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)


def sum_up_journal(journal: TableJournal, topic: str, is_over: Callable[[], bool]) -> JournalSums | None:
    """A failure is logged, not raised."""
    try:
        return journal.sum_up(is_over=is_over)
    except ContextError:
        _LOG.warning("the journal of %s stays as it is for now", topic, exc_info=True)
        return None


def tidy(opened: StagedTopic, registry: Registry) -> tuple[ContextError, ...]:
    trail = AuditTrail(topic=opened.topic, journal=opened.journal, registry=registry)
    failures: list[ContextError] = []
    for step in (lambda: registry.files.trim(opened.topic), opened.journal.sum_up, trail.tidy):
        try:
            step()
        except ContextError as error:
            failures.append(error)
    return tuple(failures)
