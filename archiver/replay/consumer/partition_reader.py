"""One partition being read. Waits only for an unfinished read."""

from __future__ import annotations

import logging
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import assert_never

import pyarrow as pa

from archiver.archive.read_ahead import ReadAhead
from archiver.archive.topic_archive import TopicArchive
from archiver.errors import RecordsRetired
from archiver.replay.consumer.confluent_types import AUTO_OFFSET_RESET, PartitionId, failure
from archiver.replay.consumer.message import MessageBatch
from archiver.replay.consumer.options import OffsetReset

_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class PartitionReader:
    """`position` is the next offset to read; `reset` applies if it was retired.

    `consumed` is the offset after the last returned record. `row` is the next row of `batch`. `read_ahead_end` is
    exclusive.
    """

    archive: TopicArchive
    partition: int
    position: int
    reset: OffsetReset = OffsetReset.EARLIEST
    is_paused: bool = False
    consumed: int | None = None
    eof_reported: int | None = None
    batch: MessageBatch | None = None
    row: int = 0
    read_ahead: ReadAhead[pa.RecordBatch] | None = field(default=None, repr=False)
    read_ahead_end: int = 0

    @property
    def partition_id(self) -> PartitionId:
        return self.archive.topic, self.partition

    @property
    def end(self) -> int:
        """As of the last refresh."""
        return self.archive.end(self.partition)

    @property
    def is_at_end(self) -> bool:
        return self.batch is None and self.read_ahead is None and self.position >= self.end

    def seek(self, offset: int) -> None:
        self.close()
        self.position = offset
        self.consumed = None
        self.eof_reported = None

    def close(self) -> None:
        """The reader can start again from its position."""
        if self.read_ahead is not None:
            self.read_ahead.close()
        self.read_ahead, self.batch, self.row = None, None, 0

    def start_reading(self, executor: Executor) -> None:
        self.read_ahead_end = self.end
        self.read_ahead = ReadAhead(self.archive.records(self.partition, self.position, self.read_ahead_end), executor)

    def take_batch(self) -> bool:
        """Take the next batch; False at the end. Raises the read's error.

        The position moves past offsets without records, and as `reset` says past retired ones.
        """
        assert self.read_ahead is not None
        try:
            batch = self.read_ahead.take()
        except RecordsRetired as error:
            self.close()
            self.position = self._reset_position(error)
            return False
        except BaseException:
            self.close()
            raise
        if batch is None:
            self.close()
            self.position = max(self.position, self.read_ahead_end)
            return False
        self.batch, self.row = MessageBatch(self.archive.topic, self.partition, batch), 0
        return True

    def _reset_position(self, error: RecordsRetired) -> int:
        name = f"{self.archive.topic} [{self.partition}]"
        retired = f"{name}: offset {self.position} was retired, and the archive begins at {error.first_offset} now"
        match self.reset:
            case OffsetReset.EARLIEST:
                _LOG.warning("%s; reading goes on there (auto.offset.reset = earliest)", retired)
                return error.first_offset
            case OffsetReset.LATEST:
                _LOG.warning("%s; reading goes on at the end, %d (auto.offset.reset = latest)", retired, self.end)
                return self.end
            case OffsetReset.ERROR:
                raise failure(AUTO_OFFSET_RESET, f"{retired}. Seek to an offset from there on") from error
            case _:
                assert_never(self.reset)

    def advance(self, rows: int) -> None:
        assert self.batch is not None
        self.row += rows
        self.position = self.consumed = self.batch.offsets[self.row - 1] + 1
        if self.row == len(self.batch):
            self.batch, self.row = None, 0

    def remaining(self) -> pa.RecordBatch:
        assert self.batch is not None
        return self.batch.records.slice(self.row)
