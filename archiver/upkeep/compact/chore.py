"""Compaction between archive runs, on the job's engine, for topics with `compact = "auto"`."""

from __future__ import annotations

from collections.abc import Callable

from archiver.chores.chore import Chore, ChoreOutcome, ChoreTurn
from archiver.config import Config
from archiver.observer import ignore
from archiver.storage.journal_memory import JournalMemory
from archiver.upkeep.compact.choice import Budget
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.compact.report import CompactObserver


def compaction(
    config: Config, observer: CompactObserver = ignore, *, job_of: Callable[..., Compact] = Compact
) -> Chore:
    memory = JournalMemory()

    def run(turn: ChoreTurn) -> ChoreOutcome:
        settings = config.archive
        budget = Budget(
            is_over=turn.is_over, largest_group=settings.task_size, commit_seconds=settings.max_commit_interval
        )
        job = job_of(
            config,
            (turn.topic.topic,),
            Wish(saves_work=True),
            observer,
            budget=budget,
            engine=turn.engine,
            memory=memory,
        )
        (done,) = job.run().topics
        failures = (*done.failures.values(), *((done.error,) if done.error else ()))
        if not (done.stopped or failures):
            turn.keep(turn.last_commit)
        return ChoreOutcome(is_finished=not done.stopped, failures=failures)

    return Chore(
        name="compaction",
        when="when idle",
        run=run,
        applies_to=lambda topic: config.topic(topic).compact == "auto",
    )
