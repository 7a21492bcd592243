"""The shared work of a topic's erasures; staged ranges are committed before."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from archiver.config import Config
from archiver.errors import LogNotWritten, TopicBusy
from archiver.observer import ignore
from archiver.rewrite.settling import settle_rewrites
from archiver.topics.written_log import await_written
from archiver.upkeep.archived_topic import known_topics
from archiver.upkeep.erase.report import EraseFailed, EraseObserver
from archiver.upkeep.reconcile import reconcile
from archiver.upkeep.removal.work import RemovalWork
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.deletion_gate import refuse_shared
from catalog.registry import Registry
from schema_mapping.errors import ContextError

STAGED_TRIES: Final = 30
STAGED_PAUSE: Final = 2.0
"""How often and how far apart it is looked whether an archiver has committed what was staged."""


def refuse_unerasable(table: ArchiveTable) -> None:
    """Raise FilesShared if the owner forbids deleting files: erased records would stay."""
    refuse_shared(table.properties, table.topic.table, refused="nothing was erased")


def await_logs(config: Config, topics: Sequence[str], registry: Registry) -> None:
    """Raise LogNotWritten if logs aren't in the tables in time."""
    for topic in known_topics(config, topics, registry) if topics else ():
        await_written(registry, topic, purpose="An erasure has to reach them, too: nothing was erased.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicErasure(RemovalWork):
    observer: EraseObserver = ignore

    def settle(self, ends: Mapping[int, int]) -> None:
        """Wait until staged records below these offsets are committed, by an archiver or this process.

        Raises TopicBusy (retryable) if that takes too long.
        """
        for attempt in range(STAGED_TRIES):
            pending = self.registry.files.pending(self.topic)
            waiting = [range_ for range_ in pending if range_.start_offset < ends.get(range_.partition, 0)]
            if not waiting:
                settle_rewrites(self, self.table)
                self.trail(self.topic).note_hold(is_held=self.config.topic(self.topic.topic).hold)
                return
            if attempt:
                time.sleep(STAGED_PAUSE)
            reconcile(self.config, (self.topic.topic,))
        raise TopicBusy(
            "files with records that may have to go wait for their commit: run it again when the archiver has committed"
            " them, or after `archiver reconcile`",
            topic=self.topic.topic,
            files=[file.path for range_ in waiting for file in range_.files][:5],
        )

    def now_ms(self) -> int:
        """By the clock of Postgres."""
        return self.registry.index.now_ms(self.topic)


def unwritten_log(work: TopicErasure) -> dict[str, ContextError]:
    """Rows in a write-ahead log may have reached the table after the search began.

    Empty once its server has removed them.
    """
    try:
        await_written(
            work.registry,
            work.topic,
            purpose="Erased rows may still be in it: the erasure stays open, and `archiver erase TOPIC --finish`"
            " continues it.",
        )
    except LogNotWritten as error:
        folder = str(error.context["log"])
        work.observer(EraseFailed(path=folder, error=error))
        return {folder: error}
    return {}
