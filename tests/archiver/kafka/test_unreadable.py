"""The next readable offset after corruption.

The fake broker finds batches by `OffsetIndex.lookup`, then `FileRecords.searchForOffsetFromPosition`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kafka import errors as kafka

from archiver.errors import CorruptBatch, LeaderSilent
from archiver.kafka.fetched import Fetched
from archiver.kafka.range_reader import RangeToRead, read_range
from archiver.kafka.sound_batches import is_readable, sound_batch, without_corrupt_head
from archiver.kafka.unreadable import next_readable, unreadable
from archiver.wire import DecodeLimits
from tests.support.kafka.message_sets import message, wrapper
from tests.support.kafka.record_batches import Record, build, offsets

HEADER = struct.Struct(">qi")


@dataclass
class FakeLog:
    data: bytearray
    index: Sequence[tuple[int, int]]
    end: int
    replicas: Mapping[int, bytes | Exception] = field(default_factory=dict)
    silent: range = range(0)
    refused: range = range(0)
    reconnects: int = 0
    first_local: int | None = 0
    fetches: list[int] = field(default_factory=list)

    def fetch(self, offset: int, *, max_bytes: int | None = None, committed: bool = True) -> Fetched:
        del committed
        self.fetches.append(offset)
        if offset in self.refused:
            raise CorruptBatch("The broker reports that its own log is corrupt here")
        data = b"" if offset in self.silent or offset >= self.end else self._from(offset, max_bytes or 1 << 20)
        return Fetched(data=data, aborted=(), high_watermark=self.end, last_stable_offset=self.end, log_start_offset=0)

    def _from(self, offset: int, most: int) -> bytes:
        at = max((position for base, position in self.index if base <= offset), default=0)
        while at + 27 <= len(self.data):
            base, length = HEADER.unpack_from(self.data, at)
            delta = struct.unpack_from(">i", self.data, at + 23)[0] if self.data[at + 16] == 2 else 0
            if base + delta >= offset or length <= 0:
                return bytes(self.data[at : at + max(most, length + 12)])
            at += length + 12
        return b""

    def fetch_from(self, replica: int, offset: int, *, max_bytes: int) -> bytes:
        del offset, max_bytes
        answer = self.replicas[replica]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def other_replicas(self) -> tuple[int, ...]:
        return tuple(self.replicas)

    def local_start(self) -> int | None:
        return self.first_local

    def reconnect(self) -> None:
        self.reconnects += 1


def log_of(*batches: bytes, bases: Sequence[int], end: int, every: int = 1, **more: object) -> FakeLog:
    positions = [0, *accumulate(map(len, batches))][: len(batches)]
    index = list(zip(bases, positions, strict=True))[::every]
    return FakeLog(bytearray(b"".join(batches)), index, end, **more)  # type: ignore[arg-type]


def even_log(count: int = 5, records: int = 10, **more: object) -> FakeLog:
    """Batches of the same size, so that a wrong length may end at another batch."""
    bases = [number * records for number in range(count)]
    batches = [build([Record(value=b"%08d" % base)] * records, base_offset=base) for base in bases]
    return log_of(*batches, bases=bases, end=count * records, **more)


def size_of(log: FakeLog) -> int:
    return int(HEADER.unpack_from(log.data, 0)[1]) + 12


def test_a_sound_batch_is_fetched_once() -> None:
    log = even_log()
    assert unreadable(log, 15) is None
    assert (log.fetches, log.reconnects) == ([15], 0)


def test_three_fetches_one_of_them_on_a_new_connection() -> None:
    log = even_log()
    log.data[size_of(log) * 2 - 1] ^= 1
    assert unreadable(log, 10) == "the batch is corrupt"
    assert (log.fetches, log.reconnects) == ([10, 10, 10], 1)
    assert next_readable(log, 10) == 20


@pytest.mark.parametrize("every", [1, 2, 5])
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("value", lambda log, at, size: log.data.__setitem__(at + size - 1, log.data[at + size - 1] ^ 1)),
        ("length, at a later batch", lambda log, at, size: struct.pack_into(">i", log.data, at + 8, 2 * size - 12)),
        ("length, short", lambda log, at, size: struct.pack_into(">i", log.data, at + 8, 60)),
        ("length, negative", lambda log, at, size: struct.pack_into(">i", log.data, at + 8, -5)),
        ("length, beyond all", lambda log, at, size: struct.pack_into(">i", log.data, at + 8, 1 << 29)),
        ("length, zero", lambda log, at, size: struct.pack_into(">i", log.data, at + 8, 0)),
        ("last offset, far", lambda log, at, size: struct.pack_into(">i", log.data, at + 23, 1 << 20)),
        ("last offset, inside", lambda log, at, size: struct.pack_into(">i", log.data, at + 23, 3)),
        ("magic", lambda log, at, size: log.data.__setitem__(at + 16, 9)),
        ("attributes", lambda log, at, size: log.data.__setitem__(at + 22, log.data[at + 22] ^ 0x20)),
        ("number of records", lambda log, at, size: struct.pack_into(">i", log.data, at + 57, 1 << 30)),
        ("producer", lambda log, at, size: struct.pack_into(">q", log.data, at + 43, 7)),
        ("checksum", lambda log, at, size: log.data.__setitem__(at + 17, log.data[at + 17] ^ 8)),
    ],
)
def test_no_field_of_a_corrupt_header_is_trusted(field: str, change: object, every: int) -> None:
    log = even_log(every=every)
    size = size_of(log)
    change(log, size, size)  # type: ignore[operator]
    assert unreadable(log, 10) is not None, field
    if every == 5 and field.startswith("length"):  # then the leader itself can't find the next batch
        with pytest.raises(CorruptBatch, match="Nothing is recorded as lost"):
            next_readable(log, 10)
    else:
        assert next_readable(log, 10) == 20, field


def test_a_log_is_read_after_a_corrupt_head() -> None:
    log = even_log(every=5)
    struct.pack_into(">i", log.data, size_of(log) + 23, 1 << 20)
    assert sound_batch(memoryview(log.fetch(30).data)) is None
    pieces = read_range(
        lambda offset, *, peek, last_epoch: log.fetch(offset, max_bytes=1 if peek else 2_000),
        RangeToRead(start_offset=next_readable(log, 10), end_offset=50, cut_head=True, limits=DecodeLimits()),
        stall_seconds=1,
        where={},
    )
    assert [offset for piece in pieces for offset in offsets(piece)] == list(range(20, 50))
    assert without_corrupt_head(b"", 3) == b""


def test_bytes_of_a_record_that_look_like_a_batch() -> None:
    """Producers may copy batches, also with the offset of a later batch."""
    for inner in (15, 20, 30, 17):
        copied = build([Record()] * 3, base_offset=inner)
        outer = bytearray(build([Record(value=copied)] * 10, base_offset=10))
        outer[-2] ^= 1
        bases = [0, 10, 20, 30]
        batches = [build([Record()] * 10, base_offset=base) for base in bases]
        batches[1] = bytes(outer)
        log = log_of(*batches, bases=bases, end=40)
        assert unreadable(log, 10) is not None
        assert next_readable(log, 10) == 20, inner


def test_nothing_follows_the_corrupt_batch() -> None:
    log = even_log()
    log.data[-1] ^= 1
    with pytest.raises(CorruptBatch, match="No batch with a right checksum follows") as caught:
        next_readable(log, 40, topic="t", partition=3)
    assert caught.value.context == {"topic": "t", "partition": 3, "offset": 40, "last_stable_offset": 50}


def test_corrupt_batches_in_a_row() -> None:
    log, size = even_log(), 0
    size = size_of(log)
    for batch in (1, 2, 3):
        log.data[(batch + 1) * size - 1] ^= 1
    assert next_readable(log, 10) == 40


def test_the_broker_refuses_its_own_batch() -> None:
    log = even_log(refused=range(10, 20))
    assert unreadable(log, 10) == "The broker reports that its own log is corrupt here"
    assert next_readable(log, 10) == 20


def test_a_leader_that_answers_nothing() -> None:
    log = even_log(silent=range(10, 20))
    assert unreadable(log, 10) == "the leader answers with no records"
    assert next_readable(log, 10) == 20
    assert set(range(10, 21)) <= set(log.fetches), "every offset before the next batch was requested"
    with pytest.raises(CorruptBatch, match="Nothing is recorded as lost"):
        next_readable(even_log(silent=range(10, 50)), 10)


def test_silent_remote_storage_is_no_loss() -> None:
    with pytest.raises(LeaderSilent, match="remote storage"):
        next_readable(even_log(silent=range(10, 20), first_local=20), 10)
    assert next_readable(even_log(silent=range(10, 20), first_local=None), 10) == 20


def test_what_can_be_read_again_is_no_loss() -> None:
    log = even_log()
    first = log.fetch

    def flaky(offset: int, **how: object) -> Fetched:
        if log.reconnects:
            return first(offset)
        raise CorruptBatch("broken network card")

    log.fetch = flaky  # type: ignore[method-assign, assignment]
    assert unreadable(log, 10) is None


def test_a_replica_that_has_the_records_is_named() -> None:
    sound = build([Record()] * 10, base_offset=10)
    bad = sound[:-1] + b"\xff"
    with pytest.raises(CorruptBatch, match="Another replica has the records") as caught:
        next_readable(even_log(replicas={1: bad, 2: sound}), 10)
    assert caught.value.context["replica"] == 2
    away = kafka.KafkaConnectionError("refused")
    with pytest.raises(LeaderSilent, match="doesn't give them") as caught_away:
        next_readable(even_log(replicas={1: bad, 2: away}), 10)
    assert caught_away.value.context["replica"] == 2
    log = even_log(replicas={1: bad, 2: kafka.NotLeaderForPartitionError()})
    log.data[size_of(log) * 2 - 1] ^= 1
    assert next_readable(log, 10) == 20, "a service that allows no reads from replicas"


def test_message_sets() -> None:
    bases = [0, 1, 4]
    sets = [message(0, magic=1), wrapper(3, [message(at) for at in range(3)], "gzip"), message(4, magic=1)]
    log = log_of(*sets, bases=bases, end=5)
    assert is_readable(bytes(log.data), 2)
    bad = bytearray(sets[0])
    bad[-1] ^= 1
    log.data[: len(bad)] = bad
    assert unreadable(log, 0) is not None
    assert next_readable(log, 0) == 1, "a compressed set begins at its first message"


@given(st.lists(st.integers(1, 30), min_size=2, max_size=6), st.data())
def test_no_readable_record_is_skipped(counts: list[int], data: st.DataObject) -> None:
    bases = [0, *accumulate(counts)][:-1]
    batches = [
        build([Record(value=b"%d" % base)] * count, base_offset=base) for base, count in zip(bases, counts, strict=True)
    ]
    number = data.draw(st.integers(0, len(batches) - 1))
    broken = bytearray(batches[number])
    broken[data.draw(st.integers(0, len(broken) - 1))] ^= data.draw(st.integers(1, 255))
    batches[number] = bytes(broken)
    log = log_of(*batches, bases=bases, end=sum(counts), every=data.draw(st.integers(1, 3)))
    offset = bases[number]
    assume(unreadable(log, offset) is not None)
    try:
        base = next_readable(log, offset)
    except CorruptBatch:
        return  # nothing is recorded as lost
    assert base == bases[number + 1]


def test_records_that_come_back_between_two_looks_are_no_loss() -> None:
    log = even_log(silent=range(10, 11))
    assert unreadable(log, 10) == "the leader answers with no records"
    log.silent = range(0)
    with pytest.raises(LeaderSilent, match="gives the records again"):
        next_readable(log, 10)


def test_a_batch_behind_a_corrupt_head_is_readable() -> None:
    log = even_log()
    struct.pack_into(">i", log.data, size_of(log) + 23, 109)  # the second batch claims offsets up to 119
    log.index = log.index[:2]
    assert unreadable(log, 20) is None
    with pytest.raises(LeaderSilent, match="gives the records again"):
        next_readable(log, 20)


def test_a_replica_that_refuses_may_have_the_records() -> None:
    for refusal in (kafka.TopicAuthorizationFailedError(), kafka.SaslAuthenticationFailedError()):
        log = even_log(replicas={1: refusal})
        log.data[size_of(log) * 2 - 1] ^= 1
        with pytest.raises(LeaderSilent, match="allow this principal"):
            next_readable(log, 10)


def test_bytes_of_a_record_that_imitate_a_batch_of_this_log() -> None:
    imitation = build([Record(value=b"imitated")] * 10, base_offset=40)
    batches = [build([Record(value=b"x" * 400)] * 10, base_offset=base) for base in (0, 10, 20, 30, 40)]
    batches[1] = build([Record(value=imitation)] * 10, base_offset=10)
    log = log_of(*batches, bases=(0, 10, 20, 30, 40), end=50)
    at = len(batches[0]) + len(batches[1]) - 1
    log.data[at] ^= 1
    assert next_readable(log, 10) == 20
