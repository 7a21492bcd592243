"""Erasures wait for the write-ahead log."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from archiver.upkeep.erase import finishing
from archiver.upkeep.erase.copies import Copies
from archiver.upkeep.erase.finishing import finish
from archiver.upkeep.erase.report import EraseFailed, EraseReport
from archiver.upkeep.removal.purge import Purged
from catalog.registry.erased_offsets import SEARCHED_MS
from catalog.registry.intake_logs import IntakeLogRow

LOG = IntakeLogRow(
    wal_id="w",
    folder="host:/wal/t",
    epoch=1,
    drained=False,
    next_offsets={},
    reported_at=datetime(2026, 11, 29, tzinfo=UTC),
    silent_seconds=61.0,
)


@pytest.mark.parametrize("is_written", [False, True])
def test_an_erasure_waits_for_the_log(is_written: bool, tmp_path: Path) -> None:
    """Rows that arrived after the first look may be erased, and still be in the log."""
    topic = SimpleNamespace(id=1, topic="t", table="kafka.t")
    finished: list[Any] = []
    events: list[Any] = []
    erasures = SimpleNamespace(
        unfinished=lambda _: {"A": {"id": "A", SEARCHED_MS: 1}},
        offsets=lambda _: {0: [(3, 4)]},
        note_searched=lambda *_: None,
        note_waiting=lambda *_: None,
        finish=lambda _, ids: finished.extend(ids),
    )
    log = replace(LOG, drained=is_written)
    trail = SimpleNamespace(record=lambda _: None)
    work: Any = SimpleNamespace(
        topic=topic,
        table=None,
        catalog=None,
        formats=None,
        observer=events.append,
        now_ms=lambda: 5,
        trail=lambda _: trail,
        config=SimpleNamespace(
            archive=SimpleNamespace(spool=tmp_path, orphan_grace=0.0), topic=lambda _: SimpleNamespace(hold=False)
        ),
        registry=SimpleNamespace(
            erasures=erasures,
            claims=SimpleNamespace(runs=lambda _: ()),
            intake=SimpleNamespace(of_topics=lambda _: {1: log}),
        ),
    )
    report = EraseReport(topic="t", table="kafka.t", dry_run=False, erasure="A")
    with mock.patch.multiple(
        finishing,
        purge=lambda *_: Purged(),
        RemovedFiles=lambda *_: SimpleNamespace(look=lambda: None),
        remove_copies=lambda *_, **__: Copies(),
        erase_metadata=lambda *_: {},
        erase_terms=lambda *_, **__: ({}, ()),
        _clean_machine=lambda *_: None,
    ):
        finish(work, report, grace=0.0, now=5.0)
    assert (finished, report.finished, report.unfinished) == ((["A"], ("A",), ()) if is_written else ([], (), ("A",)))
    assert [event.path for event in events if isinstance(event, EraseFailed)] == [*report.failures]
    assert report.succeeded == is_written
    if not is_written:
        assert "`archiver erase TOPIC --finish` continues it" in str(report.failures["host:/wal/t"])
