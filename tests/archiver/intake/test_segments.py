"""Logs at start: torn ends, damage."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.errors import BadLog
from archiver.intake.frames import frame
from archiver.intake.segments import LogId
from archiver.intake.topic_log import LogLimits
from tests.support.intake.batches import batch_of
from tests.support.intake.logs import LIMITS, opened_log, survey_of
from tests.support.intake.lossy_disk import LossyDisk

SMALL = LogLimits(wal_bytes=1 << 20, segment_bytes=4 << 10)


def filled_disk(batches: int, *, limits: LogLimits = SMALL) -> LossyDisk:
    disk = LossyDisk()
    log = opened_log(disk, limits=limits)
    for number in range(batches):
        log.append([batch_of("a", number, {0: [b"x" * 100]})])
    return disk


def segments(disk: LossyDisk) -> list[str]:
    return [name for name in disk.names() if name.endswith(".wal")]


def test_a_torn_segment_has_the_batches_before() -> None:
    disk = filled_disk(2, limits=LIMITS)
    (name,) = segments(disk)
    whole = bytes(disk.names_now[name].content)
    ends = [survey_of(filled_disk(count, limits=LIMITS)).segments[0].size for count in range(3)]
    for cut in range(ends[0], ends[2] + 1):
        disk.names_now[name].content[:] = whole[:cut].ljust(len(whole), b"\xff")
        padding = 7
        fewest, most = (sum(end <= cut + lacking for end in ends[1:]) for lacking in (0, padding))
        assert fewest <= survey_of(disk).state.sequence <= most


def test_a_damaged_batch_before_a_durable_one_is_refused() -> None:
    disk = filled_disk(3, limits=LIMITS)
    (name,) = segments(disk)
    start = survey_of(filled_disk(0, limits=LIMITS)).segments[0].size
    disk.names_now[name].content[start + 40] ^= 1
    with pytest.raises(BadLog, match="the write-ahead log is damaged: entry 0 was durable") as caught:
        survey_of(disk)
    assert caught.value.context["segment"] == name
    assert caught.value.context["position"] == start


@pytest.mark.parametrize("head", [{"durable": 10**15}, [1], {"log": "another", "durable": 10**15}], ids=str)
def test_a_value_that_looks_like_an_entry_is_none(head: Any) -> None:
    disk = filled_disk(1, limits=LIMITS)
    size = survey_of(disk).segments[0].size
    opened_log(disk, limits=LIMITS, epoch=2).append([batch_of("a", 1, {0: [b"x" * 80 + frame(head)]})])
    (name,) = segments(disk)
    disk.names_now[name].content[size : size + 16] = bytes(16)
    assert survey_of(disk).state.sequence == 1


def test_a_missing_segment_is_refused() -> None:
    disk = filled_disk(60)
    assert len(segments(disk)) > 3
    disk.remove(segments(disk)[1])
    with pytest.raises(BadLog, match="it ends before entry"):
        survey_of(disk)


def test_a_log_without_segments_is_refused() -> None:
    disk = filled_disk(1)
    for name in segments(disk):
        disk.remove(name)
    with pytest.raises(BadLog, match="the write-ahead log has no segment left: restore its folder"):
        survey_of(disk)


def test_a_damaged_header_is_refused() -> None:
    disk = filled_disk(1)
    (name,) = segments(disk)
    disk.names_now[name].content[20] ^= 1
    with pytest.raises(BadLog, match="its header is unreadable"):
        survey_of(disk)


def test_a_segment_of_another_log_is_refused() -> None:
    disk = filled_disk(1)
    LogId(wal_id="another", has_begun=True).write(disk)
    with pytest.raises(BadLog, match="it belongs to topic t, log"):
        survey_of(disk)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "the file `id` of the write-ahead log is damaged: restore it"),
        (b'{"format": 1}', "the file `id` of the write-ahead log is damaged"),
        (
            b'{"format": 2, "wal_id": "x", "has_begun": true}',
            r"a newer archiver wrote the write-ahead log",
        ),
    ],
)
def test_a_damaged_id_is_refused(content: bytes, message: str) -> None:
    disk = filled_disk(1)
    disk.names_now["id"].content[:] = content
    with pytest.raises(BadLog, match=message):
        survey_of(disk)
