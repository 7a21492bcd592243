"""Where reading a partition starts: the offset asked for, or what stands in for it."""

from __future__ import annotations

from typing import assert_never

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED, TopicPartition

from archiver.archive.topic_archive import TopicArchive
from archiver.replay.consumer.options import OffsetReset
from archiver.replay.consumer.partitions import AUTO_OFFSET_RESET, INVALID_ARG, failure


def starting_offset(archive: TopicArchive, one: TopicPartition, *, committed: int | None, reset: OffsetReset) -> int:
    """Resolve `one.offset` to a number; KafkaException where it means nothing.

    An offset before the archive's first is read from there on, unless `reset` says otherwise. An offset after the last
    is waited for: the archive trails the topic.
    """
    offset: int = one.offset
    if offset in (OFFSET_STORED, OFFSET_INVALID):
        if committed is None:
            return _reset(archive, one, reset)
        offset = committed
    if offset == OFFSET_BEGINNING:
        return 0
    if offset == OFFSET_END:
        return archive.end(one.partition)
    if offset < 0:
        raise failure(INVALID_ARG, f"{offset} is no offset of {one.topic} [{one.partition}]")
    if reset is not OffsetReset.EARLIEST and offset < archive.watermarks(one.partition)[0]:
        return _reset(archive, one, reset)
    return offset


def _reset(archive: TopicArchive, one: TopicPartition, reset: OffsetReset) -> int:
    match reset:
        case OffsetReset.EARLIEST:
            return 0
        case OffsetReset.LATEST:
            return archive.end(one.partition)
        case OffsetReset.ERROR:
            raise failure(
                AUTO_OFFSET_RESET,
                f"{one.topic} [{one.partition}] has no committed offset, or one that isn't archived",
            )
        case _:
            assert_never(reset)
