"""One partition being read: where the reader stands, the batch it gives records from, and the batch it reads ahead.

Nothing here waits, except for a read that is taken before it is done.
"""

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
    """The reader of one assigned partition.

    `position` is the next offset to read. `reset` says where reading goes on if records were retired before they were
    read. `consumed` is the offset after the last record given, None before the first. `batch` is the batch that records
    are given from, `row` the next row of it. `read_ahead` reads the batches after it, up to and without the offset
    `read_ahead_end`.
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
        """Topic and number of the partition."""
        return self.archive.topic, self.partition

    @property
    def end(self) -> int:
        """The high watermark: the offset after the last archived one, as of the last refresh."""
        return self.archive.end(self.partition)

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left to read until the archive grows."""
        return self.batch is None and self.read_ahead is None and self.position >= self.end

    def seek(self, offset: int) -> None:
        """Go on from another offset."""
        self.close()
        self.position = offset
        self.consumed = None
        self.eof_reported = None

    def close(self) -> None:
        """Drop the batch and what was read ahead. The reader can start again from its position."""
        if self.read_ahead is not None:
            self.read_ahead.close()
        self.read_ahead, self.batch, self.row = None, None, 0

    def start_reading(self, executor: Executor) -> None:
        """Start to read ahead from the position up to the high watermark."""
        self.read_ahead_end = self.end
        self.read_ahead = ReadAhead(self.archive.records(self.partition, self.position, self.read_ahead_end), executor)

    def take_batch(self) -> bool:
        """Make the batch that was read ahead the one to give records from; False at the end of the stream.

        At the end the position moves past the offsets that hold no record. If records were retired before they were
        read, it moves as `reset` says. Raises what reading raised; the next read starts again from the position.
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
        place = f"{self.archive.topic} [{self.partition}]"
        retired = f"{place}: offset {self.position} was retired, and the archive begins at {error.first_offset} now"
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
        """Count the next `rows` of the batch as given."""
        assert self.batch is not None
        self.row += rows
        self.position = self.consumed = self.batch.offsets[self.row - 1] + 1
        if self.row == len(self.batch):
            self.batch, self.row = None, 0

    def remaining(self) -> pa.RecordBatch:
        """The rows of the batch that were not given yet."""
        assert self.batch is not None
        return self.batch.records.slice(self.row)
