"""The task of a removal: rewrite a component without matching rows, one row group in memory.

New files are uploaded only if they have exactly the remaining records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.deletes import Mask
from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile
from archiver.archive.table_files import TableFile
from archiver.errors import ObjectMissing
from archiver.rewrite.rewritten_file import RewrittenFile, check_footer
from archiver.rewrite.target import RewriteTarget
from archiver.storage.segment import SegmentFormat, SegmentLayout, SegmentOrigin
from archiver.storage.spool import TaskSpool
from archiver.upkeep.offset_spans import offset_spans
from archiver.upkeep.removal.components import Component
from archiver.upkeep.removal.conditions import Condition, judge
from archiver.upkeep.removal.row_account import Fate, RowAccount
from archiver.wire.record_digest import RecordDigest
from catalog.model import DataFileInfo, file_name
from catalog.partitioning import PartitionTuple
from catalog.ranges.rewrite import NewFile, RewriteGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """`keys` are keys of interest: the result says which of them removed records have."""

    condition: Condition
    fate: Fate
    why: str
    keys: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalTask:
    target: RewriteTarget
    component: Component
    removal: Removal
    places: Mapping[str, PartitionTuple] = field(default_factory=dict)
    first_offsets: Mapping[int, int] = field(default_factory=dict)
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalResult:
    """`removed` and `unjudged` (may match, stay) are (partition, start, end).

    `keys` are the keys of interest that matching records have.

    `group` is None if nothing was written. `before` and `after` are digests of the table's rows.
    """

    rows: int = 0
    removed: tuple[tuple[int, int, int], ...] = ()
    unjudged: tuple[tuple[int, int, int], ...] = ()
    keys: frozenset[bytes] = frozenset()
    before: str = ""
    after: str = ""
    group: RewriteGroup | None = None


def remove_rows(task: RemovalTask) -> RemovalResult:
    """Raise UpkeepError, ReplayError and StorageError, with the file's path."""
    return _RemovingRows(task).run()


class _RemovingRows:
    def __init__(self, task: RemovalTask) -> None:
        self._task = task
        self._target, self._removal = task.target, task.removal
        self._storage = task.target.storage()
        self._mappings = self._storage.mappings
        self._removed: dict[int, list[npt.NDArray[np.int64]]] = defaultdict(list)
        self._unjudged: dict[int, list[npt.NDArray[np.int64]]] = defaultdict(list)
        self._keys: set[bytes] = set()
        self._account = RowAccount(task.component.ranges, task.first_offsets)
        self._before, self._after = RecordDigest(), RecordDigest()

    def run(self) -> RemovalResult:
        rows = sum(self._survey(file) for file in self._task.component.files)
        in_copies = self._survey_copies()
        is_deleted_only = self._removal.fate == "erased" and self._survey_deleted()
        unjudged = _spans(self._unjudged)
        has_matches = rows or in_copies or is_deleted_only
        is_rewritten = has_matches and self._task.component.files and not self._task.dry_run
        if not is_rewritten:
            if self._removal.fate == "retired" and not self._task.dry_run:
                self._check_rows()
            return RemovalResult(
                rows=rows, removed=_spans(self._removed), unjudged=unjudged, keys=frozenset(self._keys)
            )
        spans = _spans(self._removed)
        with TaskSpool(self._target.spool) as spool:
            made = [new for file in self._task.component.files if (new := self._rewritten(file, spool)) is not None]
        group = RewriteGroup(
            paths=tuple(file.path for file in self._task.component.files),
            files=tuple(
                NewFile(file=info, spans=self._account.spans(number, self._removal.fate), is_sorted=info.is_sorted)
                for number, info in made
            ),
            emptied=self._account.emptied(self._removal.fate),
            why=self._removal.why,
            recorded=self._task.component.recorded if self._task.component.has_foreign else (),
        )
        before, after = self._before.text, self._after.text
        return RemovalResult(
            rows=rows,
            removed=spans,
            unjudged=unjudged,
            keys=frozenset(self._keys),
            before=before,
            after=after,
            group=group,
        )

    def _survey(self, file: TableFile) -> int:
        count = 0
        with closing(OpenFile.open(self._storage, file)) as opened:
            for rows, records in opened.all_records():
                count += self._note(rows, records)
        return count

    def _check_rows(self) -> None:
        """Raise UpkeepError if rows are missing: the first offset would pass rows that must be retired."""
        numbers = []
        for file in self._task.component.files:
            numbers.append(self._account.next_file())
            with closing(OpenFile.open(self._storage, file)) as opened:
                for _, records in opened.all_records():
                    self._account.count_kept(numbers[-1], records, file)
        for number in numbers:  # after all are counted: a range may be in several files
            self._account.spans(number, self._removal.fate)
        self._account.emptied(self._removal.fate)

    def _survey_copies(self) -> bool:
        present = {file_name(file.path) for file in self._task.component.files}
        matched = False
        for path in self._task.component.recorded:
            if file_name(path) not in present:
                with suppress(ObjectMissing):
                    matched |= self._survey_whole(path, self._target.formats.of_path(path))
        return matched

    def _survey_deleted(self) -> bool:
        """Rows behind delete files aren't read, but their bytes exist."""
        matched = False
        for file in self._task.component.files:
            if file.has_deletes:
                matched |= self._survey_whole(file.path, self._target.formats.named(file.format, file.path))
        return matched

    def _survey_whole(self, path: str, form: SegmentFormat) -> bool:
        count = 0
        with closing(OpenFile.whole(form, self._target.objects, path, self._mappings)) as opened:
            for rows, records in opened.all_records():
                count += self._note(rows, records)
        return count > 0

    def _note(self, rows: pa.RecordBatch, records: pa.RecordBatch) -> int:
        verdict = judge(self._removal.condition, rows, records, self._mappings)
        _add(self._removed, records, verdict.going)
        if self._removal.keys and verdict.going.any():
            keys = records.column("key").filter(pa.array(verdict.going))
            of_interest = pa.array(sorted(self._removal.keys), keys.type)
            self._keys.update(keys.filter(pc.is_in(keys, value_set=of_interest)).unique().to_pylist())
        if verdict.unjudged is not None:
            _add(self._unjudged, records, verdict.unjudged)
        return int(verdict.going.sum())

    def _rewritten(self, file: TableFile, spool: TaskSpool) -> tuple[int, DataFileInfo] | None:
        with closing(OpenFile.open(self._storage, file)) as opened:
            origin, before = self._origin(opened), RecordDigest()
            with RewrittenFile(self._target, spool, self._layout(opened)) as new:
                number = self._account.next_file()
                for rows, records in opened.all_records():
                    going = judge(self._removal.condition, rows, records, self._mappings).going
                    before += RecordDigest.of_seen(records)
                    self._account.count_gone(records, going, file)
                    if going.all():
                        continue
                    kept = pa.array(~going)
                    left = records.filter(kept)
                    new.write(rows.filter(kept), left)
                    self._account.count_kept(number, left, file)
                if not file.has_deletes:
                    check_footer(file.path, opened.reader.metadata.digest, before)
                self._before += before
                if not new.rows:
                    return None
                self._after += new.digest
                new.close(
                    file.path.rpartition("/")[0],
                    origin,
                    origin=origin,
                    partition=self._task.places.get(file.path, file.time_partition),
                )
        new.check(file.path, self._refuses)
        return number, new.upload()

    def _refuses(self, rows: pa.RecordBatch, records: pa.RecordBatch, mappings: KnownMappings) -> bool:
        return bool(judge(self._removal.condition, rows, records, mappings).going.any())

    def _origin(self, opened: OpenFile) -> SegmentOrigin | None:
        origin = opened.reader.metadata.origin
        ranges = self._task.component.ranges
        if origin is None or len(ranges) != 1 or len(self._task.component.files) != 1:
            return None
        span = (origin.partition, origin.start_offset, origin.end_offset)
        return origin if span == (ranges[0].partition, ranges[0].start_offset, ranges[0].end_offset) else None

    def _layout(self, opened: OpenFile) -> SegmentLayout:
        about = opened.reader.metadata
        texts = about.mappings or {
            version: self._mappings.row_mapping(version).text for version in opened.schema_versions()
        }
        version = max(texts) if about.schema_version is None else about.schema_version
        return self._target.layout(opened.reader.schema, version, texts)


def _add(found: dict[int, list[npt.NDArray[np.int64]]], records: pa.RecordBatch, those: Mask) -> None:
    if those.any():
        partitions = records.column("partition").to_numpy()[those]
        offsets = records.column("offset").to_numpy()[those]
        for partition in np.unique(partitions):
            found[int(partition)].append(offsets[partitions == partition])


def _spans(found: Mapping[int, list[npt.NDArray[np.int64]]]) -> tuple[tuple[int, int, int], ...]:
    return tuple(
        (partition, start, end)
        for partition, parts in sorted(found.items())
        for start, end in offset_spans(np.concatenate(parts))
    )
