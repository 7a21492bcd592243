"""A turn refuses to write if log and table contradict each other."""

from __future__ import annotations

import pytest

from archiver.errors import BadLog
from archiver.intake.files_turn import write_turn
from archiver.intake.topic_log import LogLimits
from tests.support.intake.batches import batch_of
from tests.support.intake.logs import opened_log
from tests.support.intake.lossy_disk import LossyDisk
from tests.support.intake.memory_archive import MemoryArchive


def test_a_table_that_is_ahead_is_refused() -> None:
    log, archive = opened_log(LossyDisk()), MemoryArchive()
    log.append([batch_of("a", 0, {1: [b"x", b"y"]})])
    archive.ends = {1: 5}
    with pytest.raises(BadLog, match="the table has rows that the write-ahead log doesn't know") as caught:
        write_turn(log, archive, topic="t")
    assert (caught.value.context["log_until"], caught.value.context["table_until"]) == (2, 5)


def test_rows_that_the_log_lacks_are_refused() -> None:
    """The table was rolled back, after its rows were removed from the log."""
    log, archive = opened_log(LossyDisk(), limits=LogLimits(wal_bytes=1 << 20, segment_bytes=1 << 10)), MemoryArchive()
    for number in range(4):
        log.append([batch_of("a", number, {0: [b"x" * 2000]})])
    write_turn(log, archive, topic="t")
    assert archive.ends == {0: 4}
    log.append([batch_of("a", 4, {0: [b"x"]})])
    archive.ends = {0: 1}
    with pytest.raises(BadLog, match="the write-ahead log lacks acknowledged rows: restore its segments") as caught:
        write_turn(log, archive, topic="t")
    assert caught.value.context["offset"] == 1
