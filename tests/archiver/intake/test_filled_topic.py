"""Which log a folder begins with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archiver.errors import BadLog
from archiver.intake.disk import LocalDisk
from archiver.intake.filled_topic import FilledTopic
from archiver.intake.segments import LogSurvey
from catalog.errors import LogAbandoned
from catalog.registry.intake_logs import IntakeLogRow, TakenLog
from tests.support.intake.abandoned import ROW, MemoryTable
from tests.support.intake.batches import batch_of
from tests.support.intake.logs import opened_log, survey_of

NAME = "t"


class _Begun(Exception): ...


def survey(folder: Path) -> LogSurvey:
    disk: Any = LocalDisk(folder)
    try:
        return survey_of(disk)
    finally:
        disk.close()


def fill(folder: Path) -> None:
    disk: Any = LocalDisk(folder)
    log = opened_log(disk)
    log.append([batch_of("a", 0, {0: [b"x", b"y"]})])
    log.close()
    disk.close()


def begin(
    wal: Path,
    *,
    end: int,
    abandoned: frozenset[str] = frozenset(),
    own: str | None = None,
    reported: int = 0,
    drained_end: int | None = None,
) -> None:
    row = SimpleNamespace(id=1)
    last = SimpleNamespace(
        wal_id=own or "another",
        drained=own is None,
        folder="b:/wal",
        abandoned=abandoned,
        next_offsets={0: reported},
    )
    state = {"next_offsets": {"0": end if drained_end is None else drained_end}}

    def take(_row: Any, **_: Any) -> None:
        raise _Begun

    intake = SimpleNamespace(of_topics=lambda _: {1: last}, take=take, last_state=lambda _: state)
    servers: Any = SimpleNamespace(registry=SimpleNamespace(intake=intake))
    table: Any = SimpleNamespace(register=lambda: (row, {0: end}))
    config: Any = SimpleNamespace(
        flight=SimpleNamespace(wal=wal, wal_size=1 << 20, segment_size=1 << 16, max_clients=10)
    )
    topic: Any = SimpleNamespace(name=NAME)
    FilledTopic(config, topic, servers, table=table)


def test_a_folder_with_rows_that_the_table_lacks_stays(tmp_path: Path) -> None:
    fill(tmp_path / NAME)
    before = survey(tmp_path / NAME)
    with pytest.raises(BadLog, match="the folder has acknowledged rows that the table lacks"):
        begin(tmp_path, end=1)
    after = survey(tmp_path / NAME)
    assert (after.log_id, after.state.next_offsets) == (before.log_id, {0: 2})


def test_a_folder_with_archived_rows_begins_another_log(tmp_path: Path) -> None:
    fill(tmp_path / NAME)
    before = survey(tmp_path / NAME)
    with pytest.raises(_Begun):
        begin(tmp_path, end=2)
    assert survey(tmp_path / NAME).log_id.wal_id != before.log_id.wal_id


def test_an_abandoned_log_is_never_taken_or_replaced(tmp_path: Path) -> None:
    fill(tmp_path / NAME)
    before = survey(tmp_path / NAME)
    with pytest.raises(LogAbandoned, match="was given up by `archiver abandon`"):
        begin(tmp_path, end=2, abandoned=frozenset({before.log_id.wal_id}))
    after = survey(tmp_path / NAME)
    assert (after.log_id, after.state.next_offsets) == (before.log_id, {0: 2})


def test_an_older_copy_is_refused_at_once(tmp_path: Path) -> None:
    """Taking over the log would end the server with the newest folder."""
    fill(tmp_path / NAME)
    own = survey(tmp_path / NAME).log_id.wal_id
    with pytest.raises(BadLog, match="the table has rows that the write-ahead log doesn't know"):
        begin(tmp_path, own=own, end=3, reported=2)
    with pytest.raises(BadLog, match=r"an older copy\. Start the server with the newest folder") as caught:
        begin(tmp_path, own=own, end=1, reported=3)
    assert (caught.value.context["log_until"], caught.value.context["acknowledged_until"]) == (2, 3)
    with pytest.raises(_Begun):
        begin(tmp_path, own=own, end=2, reported=2)


def test_an_empty_log_begins_at_the_drained_offsets(tmp_path: Path) -> None:
    """A process that ended before its log's first segment repeats the start."""
    own = survey(tmp_path / NAME).log_id.wal_id
    with pytest.raises(_Begun):
        begin(tmp_path, own=own, end=5, reported=5)
    with pytest.raises(BadLog, match="its folder is an older copy"):
        begin(tmp_path, own=own, end=5, reported=6)
    with pytest.raises(BadLog, match="the table has rows"):
        begin(tmp_path, end=5, drained_end=4)


class ReportedLog:
    def __init__(self, reported: Callable[[int], None] = lambda _: None) -> None:
        self.reports: list[dict[int, int]] = []
        self.drained = False
        self._reported = reported
        self._wal_id = ""

    def of_topics(self, _rows: Any) -> dict[int, IntakeLogRow]:
        if not self._wal_id:
            return {}
        at = datetime(2026, 11, 29, tzinfo=UTC)
        return {
            ROW.id: IntakeLogRow(
                wal_id=self._wal_id, folder="host:/wal", epoch=1, drained=self.drained, next_offsets={}, reported_at=at
            )
        }

    def last_state(self, _row: Any) -> dict[str, Any]:
        return {}

    def take(self, _row: Any, *, wal_id: str, **_: Any) -> TakenLog:
        self._wal_id = wal_id
        return TakenLog(epoch=1, state={})

    def report(self, _row: Any, *, next_offsets: dict[int, int], **_: Any) -> None:
        self.reports.append(dict(next_offsets))
        self._reported(len(self.reports))

    def drain(self, _row: Any, **_: Any) -> bool:
        self.drained = True
        return True


class OwnedTable(MemoryTable):
    def own(self, **_: Any) -> None:
        pass


def test_schemas_are_read_again_with_the_next_turn(tmp_path: Path) -> None:
    """A second request within seconds is answered without a turn: a client can't cause one after the other."""
    topic: Any = SimpleNamespace(
        name=NAME, partitions=1, min_file_size=1 << 30, target_file_size=1 << 30, max_lag=3600.0
    )
    config: Any = SimpleNamespace(
        flight=SimpleNamespace(wal=tmp_path, wal_size=1 << 20, segment_size=1 << 16, max_clients=10)
    )
    servers: Any = SimpleNamespace(registry=SimpleNamespace(intake=ReportedLog()))
    turns: list[str] = []
    table: Any = OwnedTable(step=turns.append)
    filled = FilledTopic(config, topic, servers, table=table)
    filled.start()
    assert turns == []
    filled.reread().result(60)
    assert "commit" in turns
    count = len(turns)
    filled.reread().result(0)
    assert len(turns) == count
    filled.close()
    filled.reread().result(0)


def test_the_end_is_reported_while_files_are_written(tmp_path: Path) -> None:
    is_turn, is_reported = threading.Event(), threading.Event()
    in_turn: list[int] = []

    def reported(_count: int) -> None:
        if is_turn.is_set():
            in_turn.append(1)
            if len(in_turn) > 2:
                is_reported.set()

    def wait(step: str) -> None:
        if step == "upload":
            is_turn.set()
            assert is_reported.wait(60), "the turn ends only after its reports"

    log = ReportedLog(reported)
    topic: Any = SimpleNamespace(
        name=NAME, partitions=1, min_file_size=1 << 30, target_file_size=1 << 30, max_lag=3600.0
    )
    config: Any = SimpleNamespace(
        flight=SimpleNamespace(wal=tmp_path, wal_size=1 << 20, segment_size=1 << 16, max_clients=10)
    )
    servers: Any = SimpleNamespace(registry=SimpleNamespace(intake=log))
    table: Any = OwnedTable(step=wait)
    filled = FilledTopic(config, topic, servers, table=table, report_seconds=0.01)
    filled.start()
    filled.append(batch_of("a", 0, {0: [b"x", b"y"]})).result(60)
    filled.close()
    assert log.drained
    assert log.reports[-1] == {0: 2}
    assert table.rows() == [(0, b"x"), (1, b"y")]
