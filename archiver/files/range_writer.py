"""Writes one partition's records in adjacent ranges of offsets."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from collections.abc import Set as AbstractSet

import numpy as np

from archiver.engine.worker_memory import give_memory_back
from archiver.errors import ParseHalted, SchemaRegistryError, UnrecognizedHalted
from archiver.files.range_files import FileTarget, PartitionedFiles, RangeFiles, RangeStart, SingleFile
from archiver.files.records import Records
from archiver.files.rotation import Rotation
from archiver.files.row_partitions import RowPartitions
from archiver.files.row_sums import summed_by
from archiver.files.translate import EnvelopeReaders, Translator
from archiver.files.upload import Uploader
from archiver.files.written import SpooledFile, WrittenRange
from archiver.storage.spool import TaskSpool
from catalog.model import SchemaNumber, new_id


class RangeWriter:
    """`spool_bytes` includes files under upload."""

    def __init__(
        self, target: FileTarget, spool: TaskSpool, uploader: Uploader, *, partition: int, spool_bytes: int
    ) -> None:
        self._target = target
        self._partition = partition
        self._spool = spool
        self._uploader = uploader
        self._translator = Translator(
            target.row,
            topic=target.topic,
            partition=partition,
            on_parse_error=target.on_parse_error,
            on_unrecognized=target.on_unrecognized,
            envelopes=EnvelopeReaders(key=target.key_envelope, value=target.value_envelope),
            waiting=target.waiting,
        )
        self._summed = summed_by(self._translator.recognizer)
        self._room = spool_bytes // 2
        self._target_bytes = min(target.target_file_size, self._room)
        by = target.partitioning
        self._rotation = Rotation(partition_by=by.time.transform if by.time else None)
        self._partitions = None if by.is_time_alone else RowPartitions(by, target.row.arrow_schema)
        self._open: RangeFiles | None = None
        self._holds_rows = False
        self._start: int | None = None
        self._written_until = 0
        self.translate_seconds = 0.0
        self.write_seconds = 0.0

    @property
    def schema_ids(self) -> Mapping[str, AbstractSet[SchemaNumber]]:
        return self._translator.schema_ids

    def write(self, records: Records) -> None:
        """Append records. A failed file's offsets are in no range.

        Raises StorageError, ValueError for a gap, and after earlier batches ParseHalted, UnrecognizedHalted or
        SchemaRegistryError.
        """
        if self._start is None:
            self._start = self._written_until = records.start_offset
        if records.start_offset != self._written_until:
            raise ValueError(f"records must follow offset {self._written_until}, and start at {records.start_offset}")
        for run in self._rotation.runs(records.batches.times):
            if run.new_partition:
                self._end_range(is_last=False)
            self._write_run(records.part(run.first, run.end, times=run.times), run.partition_value)
            if self._open is not None and self._open.is_full(self._target_bytes, self._room):
                self._rotation.end()
                self._end_range(is_last=False)
        self._written_until = records.end_offset

    def end(self) -> None:
        if self._open is not None:
            self._end_range(is_last=True)
        elif self._start is not None and self._written_until > self._start and not self._holds_rows:
            self._hand_over(new_id(), _no_files())

    def abort(self) -> None:
        if self._open is not None:
            self._open.abort()
            self._open = None

    def _write_run(self, records: Records, time_value: int) -> None:
        try:
            self._append(records, time_value)
        except (SchemaRegistryError, ParseHalted, UnrecognizedHalted) as error:
            readable = int(np.searchsorted(records.batches.last_offset, error.context.get("offset", -1)))
            if readable:
                self._write_run(records.part(0, readable), time_value)
            raise
        self._written_until = int(records.batches.last_offset[-1]) + 1

    def _append(self, records: Records, time_value: int) -> None:
        started = time.perf_counter()
        translated = self._translator.translate(records)
        written = time.perf_counter()
        self.translate_seconds += written - started
        if self._open is None:
            self._open = self._start_files(time_value)
        self._holds_rows = True
        try:
            for rows in translated:
                self._open.write(rows)
        except BaseException:
            self.abort()  # some of the rows may already be in it
            raise
        self.write_seconds += time.perf_counter() - written

    def _start_files(self, time_value: int) -> RangeFiles:
        assert self._start is not None
        start = RangeStart(
            target=self._target,
            spool=self._spool,
            partition=self._partition,
            start_offset=self._start,
            time_value=time_value,
        )
        if self._partitions is None:
            return SingleFile(start, self._summed)
        return PartitionedFiles(start, self._partitions, self._summed)

    def _end_range(self, *, is_last: bool) -> None:
        """After a failure the whole range is dropped."""
        files, self._open = self._open, None
        if files is not None:
            self._hand_over(files.id, self._finished(files, self._written_until, is_last=is_last))

    def _finished(self, files: RangeFiles, end_offset: int, *, is_last: bool) -> Generator[SpooledFile]:
        started = time.perf_counter()
        try:
            for file in files.finish(end_offset):
                self.write_seconds += time.perf_counter() - started
                if not is_last:
                    give_memory_back()  # without this, memory would grow with the number of files
                yield file
                started = time.perf_counter()
        except BaseException:
            files.abort()
            raise

    def _hand_over(self, range_id: str, files: Generator[SpooledFile]) -> None:
        assert self._start is not None
        self._uploader.upload(
            WrittenRange(
                id=range_id,
                topic=self._target.topic,
                partition=self._partition,
                start_offset=self._start,
                end_offset=self._written_until,
                schema_version=self._target.row.schema_version,
                files=files,
            )
        )
        self._start = self._written_until
        self._holds_rows = False


def _no_files() -> Generator[SpooledFile]:
    yield from ()
