"""Applies the limits of topics with `expire = "auto"` while a repeating job is idle.

Only whole files are removed. What needs consent waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from archiver.chores.chore import Chore, ChoreOutcome, ChoreTurn
from archiver.config import Config
from archiver.errors import ConsentMissing
from archiver.observer import ignore
from archiver.storage.journal_memory import JournalMemory
from archiver.upkeep.consent import WITHHELD
from archiver.upkeep.retire.job import Expire, ExpireOptions
from archiver.upkeep.retire.report import ExpireObserver

_LOG = logging.getLogger(__name__)


def retirement(
    config: Config,
    observer: ExpireObserver = ignore,
    *,
    latest: Callable[[], Config] | None = None,
    job_of: Callable[..., Expire] = Expire,
) -> Chore:
    """`latest` reloads the configuration for each turn, so that a new `hold` applies."""
    memory = JournalMemory()

    def run(turn: ChoreTurn) -> ChoreOutcome:
        name = turn.topic.topic
        job = job_of(
            latest() if latest else config,
            (name,),
            observer,
            options=ExpireOptions(is_over=turn.is_over, memory=memory),
            consent=WITHHELD,
        )
        (done,) = job.run().topics
        if isinstance(done.error, ConsentMissing):
            return ChoreOutcome(waits_for=done.error)
        for partition, path in sorted(done.kept.items()):
            _LOG.warning("a file keeps records of %s, partition %d, that should go: %s", name, partition, path)
        failures = (*((done.error,) if done.error else ()), *done.failures.values(), *done.purged.failures.values())
        if not (done.stopped or failures):
            turn.keep(turn.last_commit)
        return ChoreOutcome(is_finished=not done.stopped, failures=failures)

    return Chore(
        name="retirement",
        when="when idle",
        run=run,
        applies_to=lambda topic: config.topic(topic).expire == "auto",
    )
