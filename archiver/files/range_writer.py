"""Writes the groups of one range to data files, and records which offsets each file covers.

The ranges of the files follow each other without gaps. Each file's range ends after its last batch, where the next
file's range starts; the last one ends where the task stopped. The offsets of a file that failed are in no range.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from archiver.engine.worker_memory import give_memory_back
from archiver.errors import ParseHalted, SchemaRegistryError, UnrecognizedHalted
from archiver.files.grouping import BatchGroup
from archiver.files.rotation import BatchRun, EndReason, PartitionBy, Rotation, partition_folder
from archiver.files.translate import Translator
from archiver.files.upload import Uploader
from archiver.schemas import EnvelopeReader
from archiver.storage.file_names import DataFileName
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentFormat, SegmentLayout, SegmentOrigin, SegmentWriter
from archiver.storage.spool import TaskSpool
from archiver.storage.spool_file import SpoolFile
from archiver.wire.columns import LeaderEpochs
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo, TranslatedRange, new_id
from catalog.recognition import Recognition
from schema_mapping.row import RowMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """How a topic's records become rows, and where their files go. A value that pickles.

    `data_location` is the folder above the partition folders. `topic_id` is text, empty where the cluster gives none.
    `partitioned_by` is kept with each file.
    """

    topic: str
    topic_id: str
    cluster_id: str
    row: RowMapping
    layout: SegmentLayout
    on_parse_error: Literal["pass_through", "halt"]
    on_unrecognized: Literal["warn", "halt", "ignore"] = "warn"
    data_location: str
    partition_name: str
    partition_by: PartitionBy
    target_file_size: int
    objects: ObjectStore
    format: SegmentFormat
    key_envelope: EnvelopeReader | None = None
    value_envelope: EnvelopeReader | None = None
    partitioned_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenFile:
    """The file that is being written. `path` is its place in the object store; its range starts at `start_offset`."""

    id: str
    writer: SegmentWriter
    local: SpoolFile
    path: str
    start_offset: int
    partition_value: int


class RangeWriter:
    """Writes groups in order; `end` finishes the last file. `ended_by` counts the reasons why files ended.

    `leader_epoch` is the last one known before `start_offset`. The open file and the one that is uploaded share
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
        self._rotation = Rotation(
            partition_by=target.partition_by, target_bytes=min(target.target_file_size, spool_bytes // 2)
        )
        self._open: _OpenFile | None = None
        self._digest = RecordDigest()
        self._recognition = Recognition()
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
                self._end_file(self.written_until, EndReason.TIME_PARTITION)
            self._write_run(group.part(run.first, run.end), run)
            if self._open is not None and self._rotation.end_if_full(self._open.writer.size_bytes):
                self._end_file(self.written_until, EndReason.TARGET_SIZE)

    @property
    def schema_ids(self) -> frozenset[int]:
        """The ids of a schema registry that the records have named so far."""
        return frozenset(self._translator.schema_ids)

    def cover(self, until: int) -> None:
        """Extend the range up to `until`: the offsets before it hold no further records."""
        self.written_until = max(self.written_until, until)

    def end(self) -> None:
        """End the last file, and the range after everything that was written or covered."""
        if self._open is not None:
            self._end_file(self.written_until, EndReason.RANGE_END)
        elif self.written_until > self._start and not self._holds_rows:
            self._hand_over(new_id(), self.written_until, None, None)

    def abort(self) -> None:
        """Drop the open file, if there is one; its offsets are then in no range."""
        if self._open is not None:
            self._open.writer.abort()
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
            self._open = self._start_file(run.partition_value)
            self._digest = RecordDigest()
            self._recognition = Recognition()
        self._holds_rows = True
        try:
            for rows in pieces:
                self._open.writer.write(rows)
        except BaseException:
            self.abort()  # some of the rows may already be in it
            raise
        self._digest += digest
        self._recognition += recognition
        self.translate_seconds += translated - started
        self.write_seconds += time.perf_counter() - translated

    def _start_file(self, partition_value: int) -> _OpenFile:
        target, file_id = self._target, new_id()
        folder = partition_folder(target.partition_name, partition_value, target.partition_by)
        name = DataFileName(
            topic=target.topic,
            ulid=file_id,
            extension=target.format.extension,
            partition=self._partition,
            start_offset=self._start,
        )
        local = self._spool.create(f"{file_id}.{target.format.extension}")
        return _OpenFile(
            id=file_id,
            writer=target.format.start(local, target.layout),
            local=local,
            path=f"{target.data_location}/{folder}/{name}",
            start_offset=self._start,
            partition_value=partition_value,
        )

    def _end_file(self, end_offset: int, reason: EndReason) -> None:
        file, self._open = self._open, None
        if file is None:
            return
        started = time.perf_counter()
        target = self._target
        origin = SegmentOrigin(
            cluster_id=target.cluster_id,
            topic=target.topic,
            topic_id=target.topic_id,
            partition=self._partition,
            start_offset=file.start_offset,
            end_offset=end_offset,
        )
        info = file.writer.close(
            origin=origin,
            path=file.path,
            partition_value=file.partition_value,
            digest=self._digest.text,
            recognition=self._recognition,
        )
        if reason is not EndReason.RANGE_END:
            give_memory_back()  # without this, memory would grow with the number of files
        self.write_seconds += time.perf_counter() - started
        self.ended_by[reason] += 1
        self._hand_over(file.id, end_offset, info, file.local)

    def _hand_over(self, range_id: str, end_offset: int, file: DataFileInfo | None, local: SpoolFile | None) -> None:
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
            files=() if file is None else (replace(file, partitioned_by=self._target.partitioned_by),),
            created_ms=time.time_ns() // 1_000_000,
        )
        self._start = end_offset
        self._holds_rows = False
        self._uploader.put(finished, local)
