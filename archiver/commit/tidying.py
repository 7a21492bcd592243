"""Tidy after some commits: trim rows of the registry, sum up commits in the journal and entries of the audit trail.

Nothing depends on it. It is done at random, because that needs no memory: jobs that end after each run tidy as often as
others (docs/adr/0028).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Final

from archiver.audit.trail import AuditTrail
from archiver.commit.commit_staged import StagedTopic
from archiver.storage.journal import TableJournal
from archiver.storage.journal_sums import JournalSums
from catalog.registry import Registry
from schema_mapping.errors import ContextError

ONE_IN: Final = 64
"""One in this many commits of a topic is followed by tidying."""

_LOG = logging.getLogger(__name__)


def sum_up_journal(journal: TableJournal, topic: str, is_over: Callable[[], bool]) -> JournalSums | None:
    """Sum up old commits of a topic's journal. A failure is logged, not raised."""
    try:
        return journal.sum_up(is_over=is_over)
    except ContextError:
        _LOG.warning("the journal of %s stays as it is for now", topic, exc_info=True)
        return None


def tidy_by_chance(opened: StagedTopic, registry: Registry) -> None:
    """Tidy after some commits, chosen at random. Failures are logged, not raised."""
    if secrets.randbelow(ONE_IN) == 0:
        tidy(opened, registry)


def tidy(opened: StagedTopic, registry: Registry) -> None:
    """Trim the topic's old registry rows, and sum up old commits of its journal. Failures are logged, not raised."""
    trail = AuditTrail(topic=opened.topic, journal=opened.journal, registry=registry)
    for step in (lambda: registry.files.trim(opened.topic), opened.journal.sum_up, trail.tidy):
        try:
            step()
        except ContextError:
            _LOG.warning("what is old of %s stays as it is for now", opened.topic.topic, exc_info=True)
