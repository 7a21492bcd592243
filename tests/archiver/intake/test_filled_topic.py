"""Which log a folder begins with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archiver.errors import BadLog
from archiver.intake.disk import LocalDisk
from archiver.intake.filled_topic import FilledTopic
from archiver.intake.segments import LogSurvey
from catalog.errors import LogAbandoned
from tests.support.intake.batches import batch_of
from tests.support.intake.logs import opened_log, survey_of

NAME = "t"


class _Begun(Exception):
    pass


def survey(folder: Path) -> LogSurvey:
    disk: Any = LocalDisk(folder)
    try:
        return survey_of(disk)
    finally:
        disk.close()


def fill(folder: Path) -> None:
    """Take in two rows."""
    disk: Any = LocalDisk(folder)
    log = opened_log(disk)
    log.append([batch_of("a", 0, {0: [b"x", b"y"]})])
    log.close()
    disk.close()


def begin(wal: Path, *, end: int, abandoned: frozenset[str] = frozenset()) -> None:
    """Open the topic. The registry names another log, which was drained, and the table ends here."""
    row = SimpleNamespace(id=1)
    last = SimpleNamespace(wal_id="another", drained=True, folder="b:/wal", abandoned=abandoned)

    def take(_row: Any, **_: Any) -> None:
        raise _Begun

    intake = SimpleNamespace(of_topics=lambda _: {1: last}, take=take)
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
