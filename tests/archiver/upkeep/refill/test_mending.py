"""How a refill fills a hole."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyiceberg.table.update import update_table_metadata

from archiver.commit.table_rows import TableRows
from archiver.ingest.task.work import translate_range
from archiver.rewrite.target import RewriteTarget
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import RowRange, SegmentOrigin, SegmentReader
from archiver.upkeep.refill.copying import CopiedRows, RowCopier
from archiver.upkeep.refill.mending import ERASED, MORE_ROWS, UNKNOWN_ROWS, Mender, Mending
from catalog.iceberg.append import prepare
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.refill_commit import Refill, prepare_refill
from catalog.model import TranslatedRange, new_id
from catalog.partitioning import PartitionTuple
from catalog.ranges.holes import ExpectedFile, ExpectedRange, Hole
from tests.support.archive.archived_rows import rows_of
from tests.support.archive.lake import DAY, TOPIC, Lake
from tests.support.catalog.memory import file
from tests.support.kafka.logs import RAW, Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record

OBJECTS = ObjectStore.of({}, attempts=1)
PATH = "file:///data/lost.parquet"


class Rows:
    def __init__(self, *paths: str) -> None:
        self.paths = paths

    def offsets(self, wanted: Any) -> Any:
        return np.empty(0, np.int64)

    def has_file(self, path: str) -> bool:
        return path in self.paths


class Copier:
    def offsets(self, source: Any, wanted: Any) -> Any:
        return np.arange(source.rows)

    def copy(self, source: Any, wanted: Any, *, without: Any, gone: Any = (), is_part: bool = False) -> CopiedRows:
        return CopiedRows(rows=source.rows, digest="0" * 32, file=file("file:///data/copy.parquet", rows=source.rows))


@pytest.mark.parametrize(("there", "added"), [((), PATH), ((PATH,), "file:///data/copy.parquet")])
def test_a_file_whose_rows_were_all_deleted_does_not_come_twice(there: tuple[str, ...], added: str) -> None:
    files = (ExpectedFile(path=PATH, rows=5),)
    range_ = ExpectedRange(
        id="A", partition=0, start_offset=0, end_offset=5, files=files, rows=5, file_rows=5, digest=None
    )
    hole = Hole(range_id="A", partition=0, start_offset=0, end_offset=5, rows=5)
    mender = Mender(live=cast("TableRows", Rows(*there)), expected={"A": range_}, copier=cast("RowCopier", Copier()))
    mending = mender.from_files(hole, (file(PATH, rows=5),))
    assert (mending.rows, [item.path for item in mending.files]) == (5, [added])


def test_refill_does_not_bring_back_a_file_with_retired_rows() -> None:
    files = (ExpectedFile(path=PATH, rows=5),)
    range_ = ExpectedRange(
        id="A", partition=0, start_offset=0, end_offset=5, files=files, rows=5, file_rows=5, digest=None
    )
    hole = Hole(range_id="A", partition=0, start_offset=0, end_offset=5, rows=5)
    mender = Mender(
        live=cast("TableRows", Rows()), expected={"A": range_}, copier=cast("RowCopier", Copier()), first_offsets={0: 2}
    )
    mending = mender.from_files(hole, (file(PATH, rows=5),))
    assert [item.path for item in mending.files] == ["file:///data/copy.parquet"]


PARTITION = 4
NONE: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Mended:
    folder: Path
    digest: str | None

    def mend(
        self,
        *,
        there: Collection[int],
        log: Collection[int],
        value: bytes = b"v",
        part: bool = False,
        until: int = 0,
    ) -> Mending:
        mender, hole = self.mender(there)
        return mender.from_log(hole, archived(self.folder, log, value=value, until=until), takes_part=part)

    def mender(self, there: Collection[int]) -> tuple[Mender, Hole]:
        lake = Lake(self.folder / "table", RAW)
        if there:
            commit(lake, archived(self.folder, there))
        range_ = ExpectedRange(
            id="A",
            partition=PARTITION,
            start_offset=0,
            end_offset=5,
            files=(ExpectedFile(path="file:///lost", rows=5),),
            rows=5,
            file_rows=5,
            digest=self.digest,
        )
        copier = RowCopier(
            RewriteTarget(
                topic=TOPIC.topic,
                objects=OBJECTS,
                formats=FORMATS,
                spool=self.folder / "spool",
                mappings={},
                table_properties={},
                bloom_filters={},
            )
        )
        table = ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic))
        mender = Mender(live=TableRows(table, FORMATS), expected={"A": range_}, copier=copier)
        return mender, Hole(range_id="A", partition=PARTITION, start_offset=0, end_offset=5, rows=5 - len(there))


def archived(
    folder: Path, offsets: Collection[int], *, value: bytes = b"v", until: int = 0
) -> tuple[TranslatedRange, ...]:
    def record(offset: int) -> Record:
        return Record(timestamp=0, value=value + b"%d" % offset)

    *first, last = sorted(offsets)
    log = [batch(offset, record(offset)) for offset in first]
    log.append(batch(last, *map(record, range(last, max(last + 1, until)))))
    return translate_range(Bench(folder=folder, source=LogInMemory(log=log)).task(0, 5)).ranges


def commit(lake: Lake, ranges: Sequence[TranslatedRange]) -> None:
    table = ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic))
    attempt = prepare(table, ranges, change=None, commit_id=new_id())
    lake.metadata = update_table_metadata(lake.metadata, attempt.updates, enforce_validation=True)


@pytest.fixture
def proven(tmp_path: Path) -> Mended:
    (whole,) = archived(tmp_path / "first", range(5))
    assert whole.file is not None
    assert whole.file.digest is not None
    return Mended(tmp_path, whole.file.digest)


@pytest.mark.parametrize(("there", "back"), [({0, 1}, {2, 4}), ({0, 1, 2, 4}, NONE), (NONE, {0, 1, 2, 4})])
def test_erased_records_stay_out_of_older_files(proven: Mended, there: set[int], back: set[int]) -> None:
    """A registry restored from a backup knows the file before the erasure as whole."""
    mender, hole = proven.mender(there)
    (whole,) = archived(proven.folder / "first", range(5))
    mending = mender.from_files(hole, whole.files, [(3, 4), (7, 9)])
    assert (mending.rows, mending.reason) == (len(back), ERASED)
    offsets = [read_offsets(file.path) for file in mending.files]
    assert [*chain.from_iterable(offsets)] == sorted(back)


def read_offsets(path: str) -> list[int]:
    return [row["offset"] for row in pq.read_table(path.removeprefix("file://"))["kafka"].to_pylist()]


def test_part_of_the_log_is_unproven_and_names_no_range(proven: Mended) -> None:
    assert proven.mend(there=NONE, log={2, 3}).rows == 0
    mending = proven.mend(there=NONE, log={2, 3}, part=True)
    (copy,) = mending.files
    assert (mending.rows, mending.doubt[:10], mending.replaced_by) == (2, "not proven", ())
    with ParquetFormat().open(OBJECTS, copy.path) as reader:
        assert reader.metadata.origin is None, "a registry made again would take it for the whole range"


def test_rows_below_the_first_offset_stay_out(proven: Mended) -> None:
    mender, hole = proven.mender(())
    mender = replace(mender, first_offsets={PARTITION: 2})
    mending = mender.from_log(hole, archived(proven.folder, range(5)), takes_part=True)
    assert ([new.rows for new in mending.files], mending.replaced_by) == ([3], ())


@pytest.mark.parametrize("part", [False, True])
def test_table_and_log_together_are_proven_by_digest(proven: Mended, *, part: bool) -> None:
    mending = proven.mend(there={0, 1}, log={2, 3, 4}, part=part)
    assert (mending.rows, mending.doubt, mending.reason) == (3, "", "")


@pytest.mark.parametrize("part", [False, True])
def test_other_records_never_pass_for_those_of_before(proven: Mended, *, part: bool) -> None:
    for log in (range(5), {2, 3, 4}):
        mending = proven.mend(there={0, 1}, log=log, value=b"other", part=part)
        assert (mending.rows, mending.files) == (0, ())
        assert "other records" in mending.reason


def test_rows_without_a_digest_are_told_as_unproven(tmp_path: Path) -> None:
    mending = Mended(tmp_path, None).mend(there=NONE, log=range(5))
    assert (mending.rows, mending.doubt[:10]) == (5, "not proven")


@pytest.mark.parametrize("until", [0, 9], ids=["as many rows", "more rows, but of offsets after the range"])
def test_a_copy_of_only_some_rows_of_a_range_names_no_range(proven: Mended, until: int) -> None:
    """The other rows are in a file without a footer. A rebuilt registry would take the copy for the whole range."""
    mending = proven.mend(there={0, 1, 2}, log={3, 4}, until=until)
    (copy,) = mending.files
    assert (mending.rows, mending.doubt, mending.reason) == (2, "", "")
    with ParquetFormat().open(OBJECTS, copy.path) as reader:
        assert (reader.metadata.rows, reader.metadata.origin) == (2, None)


@pytest.mark.parametrize("offsets", [[3, 4, 0, 1, 2], [0, 1, 2, 3, 4]])
def test_a_copy_claims_the_order_of_its_source(tmp_path: Path, lake: Lake, archive: Any, offsets: list[int]) -> None:
    path = lake.add(archive.rows, archive.batch(rows_of(archive, offsets)), 0, 5)
    assert path is not None
    copier = RowCopier(
        RewriteTarget(
            topic=TOPIC.topic,
            objects=OBJECTS,
            formats=FORMATS,
            spool=tmp_path / "spool",
            mappings={},
            table_properties={},
            bloom_filters={},
        )
    )
    source = replace(file(path, rows=5), partition=PartitionTuple.of_time(DAY))
    whole = RowRange(partition=0, start_offset=0, end_offset=5)
    copied = copier.copy(source, whole, without=np.array([1], np.int64))
    assert copied.file is not None
    assert read_offsets(copied.file.path) == [offset for offset in offsets if offset != 1]
    is_sorted = offsets == sorted(offsets)
    with ParquetFormat().open(OBJECTS, copied.file.path) as reader:
        assert [block.is_sorted for block in reader.blocks()] == [is_sorted]
    table = ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic))
    refill = Refill(commit_id=new_id(), parent=table.snapshot_id, files=(copied.file,))
    lake.metadata = update_table_metadata(
        lake.metadata, prepare_refill(table, refill=refill, change=None).updates, enforce_validation=True
    )
    orders = {entry.file_path: entry.sort_order_id for entry in lake.files()}
    assert (orders[copied.file.path] is not None) is is_sorted


def accepted_two(mender: Mender, hole: Hole, *, accepted_rows: int = 2) -> tuple[Mender, Hole]:
    accepted = replace(
        mender.expected["A"], rows=3, gone=2, digest=None, accepted=((1, 3),), accepted_rows=accepted_rows
    )
    return replace(mender, expected={"A": accepted}), replace(hole, rows=hole.rows - 2)


@pytest.mark.parametrize("is_placed", [True, False])
def test_accepted_records_stay_out_of_what_comes_back(proven: Mended, *, is_placed: bool) -> None:
    mender, hole = accepted_two(*proven.mender({0}), accepted_rows=2 if is_placed else 1)
    (whole,) = archived(proven.folder / "first", range(5))
    mending = mender.from_files(hole, whole.files)
    assert mender.found_in_files(hole, whole.files) == (2 if is_placed else 0)
    if not is_placed:
        assert (mending.rows, mending.reason) == (0, UNKNOWN_ROWS)
        return
    assert (mending.rows, mending.reason, mending.doubt) == (2, "", "")
    assert [*chain.from_iterable(read_offsets(file.path) for file in mending.files)] == [3, 4]
    assert mending.restored.tolist() == [3, 4]
    assert mender.absent(hole) == ((1, 5),)
    assert mender.absent(hole, mending.restored) == ((1, 3),)


def test_accepted_records_stay_out_of_what_comes_from_kafka(proven: Mended) -> None:
    mender, hole = accepted_two(*proven.mender({0}))
    mending = mender.from_log(hole, archived(proven.folder, range(5)), takes_part=False)
    assert [*chain.from_iterable(read_offsets(file.path) for file in mending.files)] == [3, 4]
    assert (mending.rows, mending.doubt[:10], mending.replaced_by) == (2, "not proven", ())
    short = mender.from_log(hole, archived(proven.folder, {0, 1, 2, 4}), takes_part=False)
    assert (short.rows, "2 of its 3 rows" in short.reason) == (0, True)


def test_more_records_than_are_missing_are_not_brought_back(proven: Mended) -> None:
    """The registry expects one row less, and doesn't know which was erased."""
    mender, hole = proven.mender({0})
    mender = replace(mender, expected={"A": replace(mender.expected["A"], rows=4)})
    (whole,) = archived(proven.folder / "first", range(5))
    hole = replace(hole, rows=3)
    mending = mender.from_files(hole, whole.files)
    assert (mending.rows, mending.files, mending.reason) == (0, (), MORE_ROWS)
    assert mender.found_in_files(hole, whole.files) == 0


def test_offsets_of_too_many_spans_are_unknown(proven: Mended) -> None:
    mender, hole = proven.mender({0, 2, 4})
    assert mender.absent(hole) == ((1, 2), (3, 4))
    assert replace(mender, most_spans=1).absent(hole) is None


def test_missing_rows_come_from_several_files(proven: Mended) -> None:
    mender, hole = proven.mender({0})
    old = [
        file
        for part in ({0, 1, 2}, {3, 4})
        for stored in archived(proven.folder / "old", part)
        for file in stored.files
    ]
    mending = mender.from_files(hole, old)
    assert (mending.rows, mending.reason, mending.doubt) == (4, "", "")
    assert [read_offsets(file.path) for file in mending.files] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("files", [1, 2])
def test_a_copy_is_a_range_without_the_id_of_its_source(files: int) -> None:
    """Else a rebuild counts it as one more file of the range."""
    origin = SegmentOrigin(
        cluster_id="c", topic="t", topic_id="", partition=0, start_offset=0, end_offset=5, range_id="R", files=files
    )
    reader = cast("SegmentReader", SimpleNamespace(metadata=SimpleNamespace(origin=origin)))
    copied = RowCopier._origin(reader, RowRange(partition=0, start_offset=2, end_offset=9))
    assert copied == (replace(origin, range_id="", start_offset=2) if files == 1 else None)
