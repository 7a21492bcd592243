"""Reading the rest of a damaged log."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace

import pytest

from archiver.errors import BadLog
from archiver.intake.batches import BatchPart, RowsVersion
from archiver.intake.frames import frame, read_frame
from archiver.intake.salvage import Salvage, find_salvage, salvaged_batches
from archiver.intake.topic_log import LogLimits
from tests.support.intake.batches import batch_of
from tests.support.intake.logs import opened_log, survey_of
from tests.support.intake.lossy_disk import LossyDisk

LIMITS = LogLimits(wal_bytes=1 << 20, segment_bytes=4 << 10)
COUNT = 6


def filled(disk: LossyDisk, *, limits: LogLimits = LIMITS) -> str:
    log = opened_log(disk, limits=limits)
    for number in range(COUNT):
        version = RowsVersion(1, "f") if number % 2 else None
        log.append([replace(batch_of("a", number, {0: [b"%d" % number * 1000]}), schema_version=version)])
    log.close()
    return survey_of(disk).log_id.wal_id


def segments(disk: LossyDisk) -> list[str]:
    return [name for name in disk.names() if name.endswith(".wal")]


def find(disk: LossyDisk, wal_id: str) -> Salvage:
    return find_salvage(disk, topic="t", wal_id=wal_id, states=[])


def offsets(result: Salvage) -> list[tuple[int, int]]:
    return [(part.first, part.end) for part in result.parts.get(0, ())]


def rows(disk: LossyDisk, wal_id: str) -> Iterator[BatchPart]:
    for batch, body in salvaged_batches(disk, topic="t", wal_id=wal_id):
        assert batch.records(body)[0].content.column("value").to_pylist() == [b"%d" % batch.batch_id * 1000]
        yield from batch.parts


def test_a_whole_log_is_whole() -> None:
    disk = LossyDisk()
    result = find(disk, filled(disk))
    assert result.is_whole
    assert result.state.next_offsets == {0: COUNT}
    assert len(offsets(result)) == COUNT


def test_entries_after_damage_are_read() -> None:
    disk = LossyDisk()
    wal_id = filled(disk, limits=LogLimits(wal_bytes=1 << 20, segment_bytes=64 << 10))
    (name,) = segments(disk)
    content = disk.names_now[name].content
    content[content.find(b"2" * 1000) + 500] ^= 1
    result = find(disk, wal_id)
    assert not result.is_whole
    assert offsets(result) == [(0, 1), (1, 2), (3, 4), (4, 5), (5, 6)]
    assert [part.base_offset for part in rows(disk, wal_id)] == [0, 1, 3, 4, 5]
    assert result.state.next_offsets == {0: COUNT}
    assert result.state.clients.position("a").next_batch_id == COUNT


def test_each_damaged_byte_loses_one_entry_at_most() -> None:
    disk = LossyDisk()
    wal_id = filled(disk, limits=LogLimits(wal_bytes=1 << 20, segment_bytes=64 << 10))
    (name,) = segments(disk)
    content = disk.names_now[name].content
    for position in range(0, len(content.rstrip(b"\0")), 7):
        content[position] ^= 255
        assert len(offsets(find(disk, wal_id))) >= COUNT - 1
        content[position] ^= 255


def test_a_segment_that_is_gone_is_lost_and_the_rest_is_read() -> None:
    disk = LossyDisk()
    wal_id = filled(disk)
    first, second, *_ = segments(disk)
    disk.remove(second)
    result = find(disk, wal_id)
    assert not result.is_whole
    assert 0 < len(offsets(result)) < COUNT
    assert result.state.next_offsets == {0: COUNT}
    assert first in disk.names()


def test_without_segments_headers_are_unknown() -> None:
    disk = LossyDisk()
    wal_id = filled(disk)
    for name in segments(disk):
        disk.remove(name)
    result = find_salvage(disk, topic="t", wal_id=wal_id, states=[{"sequence": 2, "next_offsets": {"0": 2}}])
    assert (result.parts, result.is_whole, result.state.next_offsets) == ({}, False, {0: 2})


def test_segments_that_the_disk_does_not_give_are_named() -> None:
    class FailingDisk(LossyDisk):
        def read(self, name: str, size: int | None = None) -> bytes:
            if name == segments(self)[0] and name.endswith(".wal"):
                raise OSError(errno.EIO, "Input/output error")
            return super().read(name, size)

    disk = FailingDisk()
    good = LossyDisk()
    wal_id = filled(good)
    disk.names_now = good.names_now
    result = find(disk, wal_id)
    assert result.unreadable == {segments(disk)[0]: "Input/output error"}
    assert 0 < len(offsets(result)) < COUNT


def test_segments_of_another_log_are_named() -> None:
    disk = LossyDisk()
    filled(disk)
    result = find(disk, "another")
    assert result.parts == {}
    assert all("it belongs to topic t, log" in reason for reason in result.unreadable.values())
    assert result.unreadable


def test_a_newer_format_is_refused() -> None:
    disk = LossyDisk()
    wal_id = filled(disk)
    for name in segments(disk):
        content = disk.names_now[name].content
        content[:] = _with_format(bytes(content))
    with pytest.raises(BadLog, match="a newer archiver wrote"):
        find(disk, wal_id)


def _with_format(data: bytes) -> bytes:
    header = read_frame(data, 0)
    assert header is not None
    return frame({**header.head, "format": 2}) + data[header.end :]
