"""A new file with rows of old ones, uploaded only if it has their records."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Self, TypeAlias

import pyarrow as pa

from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile
from archiver.errors import UpkeepError
from archiver.fault_points import FaultPoint, pass_point
from archiver.rewrite.target import RewriteTarget
from archiver.storage.file_names import DataFileName
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentFormat, SegmentLayout, SegmentOrigin
from archiver.storage.spool import TaskSpool
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo, new_id
from catalog.partitioning import UNPLACED, PartitionTuple
from catalog.recognition import Recognition

Refuses: TypeAlias = Callable[[pa.RecordBatch, pa.RecordBatch, KnownMappings], bool]
"""Whether rows, with their records, must not be in the new file."""


class RewrittenFile:
    """Dropped on an error. `close` sets `info`. Methods raise StorageError."""

    info: DataFileInfo

    def __init__(
        self,
        target: RewriteTarget,
        spool: TaskSpool,
        layout: SegmentLayout,
        *,
        form: SegmentFormat | None = None,
        file_id: str | None = None,
    ) -> None:
        self._target = target
        self._form = form or target.formats.written
        self._id = file_id or new_id()
        self._local = spool.create(f"{self._id}.{self._form.extension}")
        self._writer = self._form.start(self._local, layout)
        self._digest = RecordDigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    @property
    def rows(self) -> int:
        return self._writer.rows

    @property
    def size_bytes(self) -> int:
        return self._writer.size_bytes

    @property
    def digest(self) -> RecordDigest:
        return self._digest

    def write(self, rows: pa.RecordBatch, records: pa.RecordBatch | None = None) -> None:
        """`records` are digested unless `close` gets the digest."""
        self._writer.write(rows)
        if records is not None:
            self._digest += RecordDigest.of_seen(records)

    def abort(self) -> None:
        self._writer.abort()

    def close(
        self,
        folder: str,
        start: SegmentOrigin | tuple[int, int] | None,
        *,
        origin: SegmentOrigin | None = None,
        digest: RecordDigest | None = None,
        recognition: Recognition | None = None,
        partition: PartitionTuple = UNPLACED,
    ) -> DataFileInfo:
        """`start` is partition and first offset for the name; None if rows are of several ranges."""
        at = (start.partition, start.start_offset) if isinstance(start, SegmentOrigin) else start or (None, None)
        name = DataFileName(
            topic=self._target.topic,
            ulid=self._id,
            extension=self._form.extension,
            partition=at[0],
            start_offset=at[1],
        )
        written = self._digest if digest is None else digest
        self.info = self._writer.close(
            origin=origin,
            path=f"{folder}/{name}",
            digest=written.text,
            recognition=recognition,
            partition=partition,
            largest_record=written.largest,
        )
        return self.info

    def check(self, old: str, refuses: Refuses | None = None) -> None:
        """Read the file back from the spool.

        Raises UpkeepError unless it has the written records, and none that it `refuses`; then `old` stays.
        """
        digest, rows, is_refused = RecordDigest(), 0, False
        mappings = KnownMappings(self._target.topic)
        with closing(OpenFile.whole(self._form, ObjectStore(), self._local.uri, mappings)) as opened:
            field_ids = opened.assembler.field_ids if refuses is None else None
            for batch, records in opened.all_records(field_ids):
                digest += RecordDigest.of_seen(records)
                rows += records.num_rows
                is_refused |= refuses is not None and refuses(batch, records, mappings)
        if is_refused or digest.text != self.info.digest or rows != self.info.rows:
            raise UpkeepError(
                "the rewritten file would not give back exactly the records that must stay; the old one stays. This is"
                " a fault of the archiver: please report it",
                file=old,
                digest=self.info.digest,
                found=digest.text,
            )

    def upload(self) -> DataFileInfo:
        pass_point(FaultPoint.BEFORE_UPLOAD)
        self._target.objects.upload(self._local, self.info.path, expected=self.info.size_bytes)
        pass_point(FaultPoint.AFTER_UPLOAD)
        self._local.remove()
        return self.info


def check_footer(path: str, footer: str | None, found: RecordDigest) -> None:
    """Raise UpkeepError for another digest. Not for files with deleted rows."""
    if footer is not None and footer != found.text:
        raise UpkeepError(
            "the file's records don't have the digest in its footer: it was damaged; restore it from a backup",
            file=path,
            footer=footer,
            found=found.text,
        )
