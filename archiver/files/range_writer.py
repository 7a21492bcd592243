"""Writes the groups of one planned range to data files, and records which offsets their ranges cover.

The ranges follow each other without gaps. Each ends after its last batch, where the next one starts; the last one ends
where the task stopped. A range has one file, or one for each partition of its rows. If one of its files fails, its
offsets are in no range.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from archiver.engine.worker_memory import give_memory_back
from archiver.errors import ParseHalted, SchemaRegistryError, UnrecognizedHalted
from archiver.ingest.kafka_log.grouping import BatchGroup
from archiver.files.range_files import FilesByPartition, FileTarget, OneFile, Range, RangeFiles
from archiver.files.recognition import Recognizer
from archiver.files.rotation import BatchRun, EndReason, Rotation
from archiver.files.row_partitions import RowPartitions
from archiver.files.translate import Translator
from archiver.files.upload import Uploader
from archiver.storage.spool import TaskSpool
from archiver.storage.spool_file import SpoolFile
from archiver.wire.columns import LeaderEpochs
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo, SchemaNumber, TranslatedRange, file_name, new_id


class RangeWriter:
    """Writes groups in order; `end` finishes the last files. `ended_by` counts the reasons why ranges ended.

    `leader_epoch` is the last one known before `start_offset`. The open files and those that are uploaded share
    `spool_bytes`.
    """

    def __init__(
        self,
        target: FileTarget,
        spool: TaskSpool,
        uploader: Uploader,
        *,
        partition: int,
        start_offset: int,
        leader_epoch: int,
        spool_bytes: int,
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
            key_envelope=target.key_envelope,
            value_envelope=target.value_envelope,
        )
        self._room = spool_bytes // 2
        self._target_bytes = min(target.target_file_size, self._room)
        self._rotation = Rotation(partition_by=target.partition_by)
        self._partitions = RowPartitions(target.columns, target.row.arrow_schema) if target.columns else None
        self._recognizer = Recognizer(target.row)
        self._open: RangeFiles | None = None
        self._start = start_offset
        self._leader_epoch = leader_epoch
        self._epochs: list[tuple[int, int]] = []
        self._holds_rows = False
        self.written_until = self._start
        self.ended_by: dict[EndReason, int] = dict.fromkeys(EndReason, 0)
        self.translate_seconds = 0.0
        self.write_seconds = 0.0

    def begin_at(self, offset: int) -> None:
        """Move the range's start, before anything is written: offsets before it belong to another range's batch."""
        self._start = self.written_until = offset

    def note_epochs(self, epochs: LeaderEpochs) -> None:
        """Take the leader epochs of batches that were read, before their groups are written.

        A range's epoch is the last of all batches that it covers: of markers and aborted batches too.
        """
        begins = zip(epochs.base_offset.tolist(), epochs.epoch.tolist(), strict=True)
        highest = self._epochs[-1][1] if self._epochs else self._leader_epoch
        self._epochs += [(offset, epoch) for offset, epoch in begins if epoch > highest]

    def write(self, group: BatchGroup) -> None:
        """Append a group to the files it belongs to.

        Raises the leaves of StorageError. Where a record can't be taken, the batches before it are appended, and then
        ParseHalted, UnrecognizedHalted or a leaf of SchemaRegistryError is raised that names it.
        """
        for run in self._rotation.runs(group.times):
            if run.new_partition:
                self._end_files(self.written_until, EndReason.TIME_PARTITION)
            self._write_run(group.part(run.first, run.end), run)
            if self._open is not None and self._open.is_full(self._target_bytes, self._room):
                self._rotation.end()
                self._end_files(self.written_until, EndReason.TARGET_SIZE)

    @property
    def schema_ids(self) -> Mapping[str, AbstractSet[SchemaNumber]]:
        """The ids and GUIDs of a schema registry that the keys and the values have named."""
        return self._translator.schema_ids

    def cover(self, until: int) -> None:
        """Extend the range up to `until`: the offsets before it hold no further records."""
        self.written_until = max(self.written_until, until)

    def end(self) -> None:
        """End the last files, and the range after everything that was written or covered."""
        if self._open is not None:
            self._end_files(self.written_until, EndReason.RANGE_END)
        elif self.written_until > self._start and not self._holds_rows:
            self._hand_over(new_id(), self.written_until, ())

    def abort(self) -> None:
        """Drop the open files, if there are any; their offsets are then in no range."""
        if self._open is not None:
            self._open.abort()
            self._open = None

    def _write_run(self, part: BatchGroup, run: BatchRun) -> None:
        try:
            self._append(part, run)
        except (SchemaRegistryError, ParseHalted, UnrecognizedHalted) as error:
            readable = int(np.searchsorted(part.last_offset, error.context.get("offset", -1)))
            if readable:
                shorter = replace(run, end=run.first + readable, times=run.times[:readable])
                self._write_run(part.part(0, readable), shorter)
            raise
        self.written_until = int(part.last_offset[-1]) + 1

    def _append(self, part: BatchGroup, run: BatchRun) -> None:
        started = time.perf_counter()
        pieces = self._translator.translate(part, run.times)
        recognition = self._translator.recognition
        digest = RecordDigest.of_fetched(part.records, partition=self._partition)
        translated = time.perf_counter()
        if self._open is None:
            self._open = self._start_files(run.partition_value)
        self._holds_rows = True
        try:
            self._open.write(pieces, part.records, digest, recognition)
        except BaseException:
            self.abort()  # some of the rows may already be in it
            raise
        self.translate_seconds += translated - started
        self.write_seconds += time.perf_counter() - translated

    def _start_files(self, partition_value: int) -> RangeFiles:
        if self._partitions is None:
            return OneFile(
                self._target, self._spool, partition=self._partition, start=self._start, value=partition_value
            )
        return FilesByPartition(
            self._target,
            self._spool,
            self._partitions,
            self._recognizer,
            partition=self._partition,
            value=partition_value,
        )

    def _end_files(self, end_offset: int, reason: EndReason) -> None:
        """Finish the range's files and hand them over. After a failure the range is dropped, with all of its files."""
        files, self._open = self._open, None
        if files is None:
            return
        span = Range(self._partition, self._start, end_offset)
        started = time.perf_counter()
        infos: list[DataFileInfo] = []
        try:
            for info, local in files.finish(span):
                infos.append(info)
                self.write_seconds += time.perf_counter() - started
                if reason is not EndReason.RANGE_END:
                    give_memory_back()  # without this, memory would grow with the number of files
                self._uploader.put_file(info, local, kept_as=self._kept_name(info, local, alone=files.is_alone))
                started = time.perf_counter()
        except BaseException:
            files.abort()
            raise
        self.ended_by[reason] += 1
        self._hand_over(files.id, end_offset, tuple(infos))

    def _kept_name(self, info: DataFileInfo, local: SpoolFile, *, alone: bool) -> str:
        """What a file is called in the spool if storage denies it for good."""
        name = f"{self._target.topic}-{self._partition}-{self._start:020d}"
        return f"{name}{local.path.suffix}" if alone else file_name(info.path)

    def _hand_over(self, range_id: str, end_offset: int, files: tuple[DataFileInfo, ...]) -> None:
        while self._epochs and self._epochs[0][0] < end_offset:
            _, self._leader_epoch = self._epochs.pop(0)
        finished = TranslatedRange(
            id=range_id,
            topic=self._target.topic,
            partition=self._partition,
            start_offset=self._start,
            end_offset=end_offset,
            schema_version=self._target.row.schema_version,
            leader_epoch=self._leader_epoch,
            files=files,
            created_ms=time.time_ns() // 1_000_000,
        )
        self._start = end_offset
        self._holds_rows = False
        self._uploader.end_range(finished)
