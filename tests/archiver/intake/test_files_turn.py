"""Turns refuse contradictions of log and table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from archiver.errors import BadLog, IntakeError
from archiver.intake.batches import LoggedRecords, RowsVersion
from archiver.intake.files_turn import check_covered, write_turn
from archiver.intake.topic_log import LogLimits
from catalog.model import TranslatedRange
from tests.support.intake.batches import batch_of
from tests.support.intake.logs import opened_log
from tests.support.intake.lossy_disk import LossyDisk
from tests.support.intake.memory_archive import MemoryArchive


class RejectingArchive(MemoryArchive):
    def stage(self, ranges: Sequence[TranslatedRange]) -> None:
        pass


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


class VersionedArchive(MemoryArchive):
    def write(self, records: Iterable[LoggedRecords]) -> Sequence[TranslatedRange]:
        taken = list(records)
        self.versions = [(group.partition, group.schema_version, len(group.records)) for group in taken]
        return super().write(taken)


def test_rows_are_written_with_the_schema_that_encoded_them() -> None:
    disk = LossyDisk()
    log, archive = opened_log(disk), VersionedArchive()
    versions = (None, RowsVersion(3, "a"), RowsVersion(3, "a"), RowsVersion(3, "b"))
    for number, version in enumerate(versions):
        batch = batch_of("a", number, {0: [b"x"], 1: [b"y", b"z"]})
        log.append([replace(batch, schema_version=version)])
    log.close()
    write_turn(opened_log(disk), archive, topic="t")
    assert archive.versions == [
        (partition, version, rows * batches)
        for version, batches in ((None, 1), (RowsVersion(3, "a"), 2), (RowsVersion(3, "b"), 1))
        for partition, rows in ((0, 1), (1, 2))
    ]


def test_a_turn_whose_rows_did_not_reach_the_table_fails() -> None:
    log, archive = opened_log(LossyDisk()), MemoryArchive()
    log.append([batch_of("a", 0, {0: [b"x"], 1: [b"y"]})])
    write_turn(log, archive, topic="t")
    log.append([batch_of("a", 1, {1: [b"z"]})])
    with pytest.raises(
        IntakeError, match="acknowledged rows didn't get into the table; they stay in the log"
    ) as caught:
        write_turn(log, RejectingArchive(ends=dict(archive.ends)), topic="t")
    assert [caught.value.context[key] for key in ("partition", "offset", "log_until")] == [1, 1, 2]
    assert write_turn(log, archive, topic="t").rows == 1
    assert archive.values(1) == [b"y", b"z"]


def test_a_log_with_rows_that_the_table_lacks_is_not_replaced() -> None:
    check_covered({0: 5, 1: 2}, {0: 5, 1: 3, 2: 1}, topic="t", last="b:/wal")
    for ends in ({0: 5}, {0: 5, 1: 1}):
        with pytest.raises(BadLog, match="the folder has acknowledged rows that the table lacks") as caught:
            check_covered({0: 5, 1: 2}, ends, topic="t", last="b:/wal")
        assert caught.value.context["table_until"] == ends.get(1, 0)
