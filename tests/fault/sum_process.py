"""Sums up a journal once in a process, to be killed."""

from __future__ import annotations

from archiver.config import load_config
from archiver.upkeep.journal_upkeep import SumJournals


def sum_journal(path: str, topic: str) -> int:
    return 0 if SumJournals(config=load_config(path), topics=(topic,), older_than=0.0).run(lambda _: None) else 1
