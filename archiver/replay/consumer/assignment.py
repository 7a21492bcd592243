"""The assigned partitions, which take turns by batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future

import pyarrow as pa

from archiver.replay.consumer.confluent_types import PartitionId
from archiver.replay.consumer.partition_reader import PartitionReader


class AssignedReaders:
    def __init__(self, executor: Executor, parallelism: int) -> None:
        self._executor = executor
        self._parallelism = parallelism
        self._readers: dict[PartitionId, PartitionReader] = {}
        self._turns: deque[PartitionReader] = deque()

    def __iter__(self) -> Iterator[PartitionReader]:
        return iter(self._readers.values())

    def __len__(self) -> int:
        return len(self._readers)

    def __contains__(self, partition: PartitionId) -> bool:
        return partition in self._readers

    def find(self, partition: PartitionId) -> PartitionReader | None:
        return self._readers.get(partition)

    def add(self, reader: PartitionReader) -> None:
        self._readers[reader.partition_id] = reader
        self._turns.append(reader)

    def remove(self, partition: PartitionId) -> None:
        reader = self._readers.pop(partition)
        self._turns.remove(reader)
        reader.close()

    def clear(self) -> None:
        for partition in list(self._readers):
            self.remove(partition)

    def next_ready(self, wanted: Callable[[PartitionReader], bool]) -> PartitionReader | None:
        self._read_ahead(wanted)
        for reader in tuple(self._turns):
            if not wanted(reader):
                continue
            if reader.batch is not None:
                return reader
            while reader.read_ahead is not None and reader.read_ahead.future.done():
                self._turns.remove(reader)
                self._turns.append(reader)
                if reader.take_batch():
                    return reader
                self._read_ahead(wanted)
        return None

    def running_reads(self, wanted: Callable[[PartitionReader], bool]) -> list[Future[pa.RecordBatch | None]]:
        return [reader.read_ahead.future for reader in self._turns if reader.read_ahead is not None and wanted(reader)]

    def _read_ahead(self, wanted: Callable[[PartitionReader], bool]) -> None:
        active = sum(reader.read_ahead is not None and wanted(reader) for reader in self._turns)
        for reader in self._turns:
            if active >= self._parallelism:
                return
            is_idle = reader.read_ahead is None and reader.batch is None
            if is_idle and wanted(reader) and reader.position < reader.end:
                reader.start_reading(self._executor)
                active += 1
