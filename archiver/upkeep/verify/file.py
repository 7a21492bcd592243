"""The task of a verification: read files whole and digest their records as in a replay.

Every page's checksum is verified. Two files are read at a time: each holds a batch and up to 8 MiB, or one row group's
chunks and up to 8 MiB (or one larger chunk) of further ones.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from typing import Any, Final, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.block_order import is_trusted
from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.read_ahead import ReadAhead
from archiver.archive.table_files import TableFile, ValueBounds
from archiver.archive.topic_files import TopicFiles
from archiver.errors import ObjectMissing, StorageDenied
from archiver.storage.objects import ListedObject
from archiver.storage.segment import Block
from archiver.upkeep.verify.file_claims import FileClaim, Identity, RowsOfFile, check_claim
from archiver.upkeep.verify.findings import Fault, FaultKind
from archiver.upkeep.verify.tally import Tally, TallyCut, TallyPiece
from archiver.wire.record_digest import RecordDigest
from schema_mapping.errors import ContextError

AT_ONCE: Final = 2
"""How many files of a task are read at a time: one is decoded while the store is asked for another."""

_Batch: TypeAlias = tuple[pa.RecordBatch, pa.Array | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTarget(TopicFiles):
    identity: Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToRead:
    file: TableFile
    cuts: tuple[TallyCut, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTask:
    target: VerifyTarget
    files: tuple[FileToRead, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedFile:
    """`rows` include `deleted`, `pieces` are of live rows, partial without `is_read`."""

    path: str
    size_bytes: int
    modified_ms: int | None
    rows: int = 0
    deleted: int = 0
    pieces: tuple[TallyPiece, ...] = ()
    claim: FileClaim | None = None
    is_intact: bool = False
    is_read: bool = True
    faults: tuple[Fault, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "pieces": [piece.to_json() for piece in self.pieces],
            "claim": None if self.claim is None else self.claim.to_json(),
            "faults": [fault.to_json() for fault in self.faults],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            **{name: value[name] for name in _PLAIN},
            pieces=tuple(map(TallyPiece.from_json, value["pieces"])),
            claim=None if value["claim"] is None else FileClaim(**value["claim"]),
            faults=tuple(map(Fault.from_json, value["faults"])),
        )


_PLAIN = ("path", "size_bytes", "modified_ms", "rows", "deleted", "is_intact", "is_read")


def verify_files(task: VerifyTask) -> tuple[VerifiedFile, ...]:
    """Failures are in the results."""
    target = task.target
    storage = target.storage()
    pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="verify")
    try:
        if len(task.files) == 1:
            return (_FileReading(target, storage, task.files[0], pool).run(),)
        results = [pool.submit(_read, target, storage, file) for file in task.files]
        return tuple(result.result() for result in results)
    finally:
        pool.shutdown(cancel_futures=True)


def _read(target: VerifyTarget, storage: TopicStorage, wanted: FileToRead) -> VerifiedFile:
    return _FileReading(target, storage, wanted).run()


class _FileReading:
    def __init__(
        self, target: VerifyTarget, storage: TopicStorage, wanted: FileToRead, ahead: Executor | None = None
    ) -> None:
        self._target = target
        self._ahead = ahead
        # A footer's mapping may have been changed: what one file says must not serve another.
        self._storage = replace(storage, mappings=KnownMappings(target.topic, target))
        self._file = wanted.file
        self._tally = Tally(wanted.cuts)
        self._faults: list[Fault] = []
        self._rows = self._deleted = 0
        self._digest = RecordDigest()
        self._partitions: ValueBounds | None = None
        self._offsets: ValueBounds | None = None
        self._latest = -1
        self._is_read = True

    def run(self) -> VerifiedFile:
        claim: FileClaim | None = None
        seen: ListedObject | None = None
        try:
            with closing(OpenFile.open(self._storage, self._file, reads_all=True)) as opened:
                seen = opened.reader.stored
                claim = FileClaim.of(opened.reader.metadata)
                for block in opened.reader.blocks():
                    self._read(opened, block)
                if self._is_read:
                    self._check(claim, opened, seen.size)
        except Exception as error:  # noqa: BLE001 - every failure of a file is a finding
            self._fail(error)
        return self._result(claim, seen)

    def _read(self, opened: OpenFile, block: Block) -> None:
        low, high, last, is_sorted = None, None, -1, True
        try:
            with self._batches(opened, block) as batches:
                for records, kept in batches:
                    self._digest += self._counted(records, kept)
                    self._rows += records.num_rows
                    offsets = records.column("offset").to_numpy(zero_copy_only=False)
                    least, most = int(offsets.min()), int(offsets.max())
                    low = least if low is None else min(low, least)
                    high = most if high is None else max(high, most)
                    is_sorted = is_sorted and bool((np.diff(offsets, prepend=last) > 0).all())
                    last = int(offsets[-1])
                    self._note(records, least, most)
        except Exception as error:  # noqa: BLE001
            self._fail(error, block)
            return
        if low is not None and high is not None:
            self._check_block(block, low, high, is_sorted=is_sorted or not is_trusted(opened.reader, block))

    def _batches(self, opened: OpenFile, block: Block) -> AbstractContextManager[Iterable[_Batch]]:
        records = _records(opened, block)
        return closing(records) if self._ahead is None else ReadAhead(records, self._ahead)

    def _counted(self, records: pa.RecordBatch, kept: pa.Array | None) -> RecordDigest:
        if kept is None:
            return self._tally.add(records)
        left = records.filter(kept)
        self._deleted += records.num_rows - left.num_rows
        if left.num_rows:
            self._tally.add(left)
        return RecordDigest.of_seen(records)

    def _note(self, records: pa.RecordBatch, low: int, high: int) -> None:
        partitions = pc.min_max(records.column("partition"))
        bounds = ValueBounds(partitions["min"].as_py(), partitions["max"].as_py())
        self._partitions = _hull(self._partitions, bounds)
        self._offsets = _hull(self._offsets, ValueBounds(low, high))
        self._latest = max(self._latest, pc.max(records.column("timestamp")).as_py())

    def _check_block(self, block: Block, low: int, high: int, *, is_sorted: bool) -> None:
        hides = (block.low_offset is not None and low < block.low_offset) or (
            block.high_offset is not None and high > block.high_offset
        )
        if hides or (not is_sorted and self._is_one_partition()):
            self._add(
                FaultKind.FOOTER,
                f"the footer says of row group {block.index} what its rows contradict (bounds {block.low_offset} to"
                f" {block.high_offset}, found {low} to {high}{'' if is_sorted else ', not sorted'}): a replay may miss"
                " records. Restore the file from a backup",
                low,
                high + 1,
            )

    def _is_one_partition(self) -> bool:
        return self._partitions is not None and self._partitions.low == self._partitions.high

    def _check(self, claim: FileClaim, opened: OpenFile, size_bytes: int) -> None:
        file = self._file
        self._faults += check_claim(
            claim,
            opened.reader.metadata,
            RowsOfFile(path=file.path, digest=self._digest.text, partitions=self._partitions, offsets=self._offsets),
            identity=self._target.identity,
            mappings=self._target.mappings,
        )
        if (self._rows, size_bytes) != (file.rows, file.size_bytes):
            self._add(
                FaultKind.MANIFEST,
                f"the table's manifest counts {file.rows} rows and {file.size_bytes} bytes, the file has {self._rows}"
                f" and {size_bytes}: the manifest or the file was changed; restore it from a backup",
            )
        for name, stated, actual in (
            ("partition", file.partitions, self._partitions),
            ("offset", file.offsets, self._offsets),
            ("time", None if file.latest is None else ValueBounds(-1, file.latest), ValueBounds(-1, self._latest)),
        ):
            if stated is not None and actual is not None and (actual.low < stated.low or actual.high > stated.high):
                self._add(
                    FaultKind.MANIFEST,
                    f"the table's manifest says that the file's {name} lies between {stated.low} and {stated.high},"
                    f" and there are rows from {actual.low} to {actual.high}: a replay would miss them. The manifest or"
                    " the file was changed; restore it from a backup",
                )

    def _fail(self, error: Exception, block: Block | None = None) -> None:
        self._is_read = False
        if isinstance(error, ObjectMissing):
            gone = error.context.get("file", self._file.path)
            what = "the file" if gone == self._file.path else f"the delete file {gone} of it"
            message = f"the table names {what}, and the store doesn't have it: restore it from a backup, or run"
            self._add(FaultKind.MISSING_FILE, f"{message} `archiver refill` once its rows are out of the table")
            return
        is_passing = isinstance(error, StorageDenied) or (isinstance(error, ContextError) and error.retryable)
        text = str(error) if isinstance(error, ContextError) else f"{type(error).__name__}: {error}"
        kind = FaultKind.UNREADABLE if is_passing else FaultKind.DAMAGED
        where = "" if block is None else f"row group {block.index}: "
        if block is None or block.low_offset is None or block.high_offset is None:
            self._add(kind, f"{where}{text}")
        else:
            self._add(kind, f"{where}{text}", block.low_offset, block.high_offset + 1)

    def _add(self, kind: FaultKind, message: str, start: int | None = None, end: int | None = None) -> None:
        partitions = self._file.partitions
        partition = partitions.low if partitions is not None and partitions.low == partitions.high else None
        self._faults.append(
            Fault(
                kind=kind,
                message=message,
                file=self._file.path,
                partition=partition,
                start_offset=start,
                end_offset=end,
            )
        )

    def _result(self, claim: FileClaim | None, seen: ListedObject | None) -> VerifiedFile:
        return VerifiedFile(
            path=self._file.path,
            size_bytes=0 if seen is None else seen.size,
            modified_ms=None if seen is None else seen.modified_ms,
            rows=self._rows,
            deleted=self._deleted,
            pieces=self._tally.pieces(),
            claim=claim,
            is_intact=self._is_read and claim is not None and claim.digest == self._digest.text,
            is_read=self._is_read,
            faults=tuple(self._faults),
        )


def _hull(known: ValueBounds | None, more: ValueBounds) -> ValueBounds:
    return more if known is None else ValueBounds(min(known.low, more.low), max(known.high, more.high))


def _records(opened: OpenFile, block: Block) -> Generator[_Batch, None, None]:
    first = block.first_row
    reader, assembler, deletes = opened.reader, opened.assembler, opened.deletes
    needed = assembler.field_ids | deletes.field_ids
    nulls = opened.null_columns(block)
    decoded = reader.to_decode(block, needed, without=nulls)
    nulls = frozenset() if decoded is None else nulls - decoded
    for rows in reader.read(block, decoded, without=nulls, in_dictionaries=opened.takes_dictionaries):
        kafka = assembler.kafka(rows, nulls)
        kept = deletes.survivors(rows, first)
        first += rows.num_rows
        yield assembler.records(rows, kafka, nulls), None if kept.all() else pa.array(kept)
