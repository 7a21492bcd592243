"""Contradictions of journal and registry."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from archiver.upkeep.verify.evidence import contradictions
from catalog.model import DataFileInfo, TranslatedRange
from catalog.partitioning import PartitionTuple
from catalog.ranges.stored_ranges import StoredFile, StoredRange


def digest(number: int) -> str:
    return f"{number:032x}"


def stored(start: int, end: int, *files: StoredFile) -> StoredRange:
    range_ = TranslatedRange(
        id="A",
        topic="orders",
        partition=0,
        start_offset=start,
        end_offset=end,
        schema_version=1,
        leader_epoch=0,
        files=(),
        created_ms=0,
    )
    return replace(StoredRange.of(range_), files=files)


def part(path: str | None, rows: int, number: int, *, expected: int | None = None) -> StoredFile:
    info = (
        None if path is None else DataFileInfo(path=path, size_bytes=9, rows=rows, partition=PartitionTuple.of_time(0))
    )
    return StoredFile(
        id=path or "B",
        file=info,
        rows=rows,
        digest=digest(number) if path else None,
        expected=rows if expected is None else expected,
        schema_version=1,
    )


JOURNALED = (stored(0, 20, part("s3://b/compacted.parquet", 16, 7, expected=20)),)


@pytest.mark.parametrize(
    "registered",
    [
        JOURNALED,
        (stored(0, 20, part("s3://b/compacted.parquet", 16, 7), part("s3://b/copy.parquet", 4, 5)),),
        (stored(0, 12, part("s3://b/first.parquet", 12, 3)), stored(12, 20, part("s3://b/second.parquet", 8, 9))),
    ],
    ids=["same", "a refill's copy", "a rollback to the files before a compaction"],
)
def test_rebuilt_ranges_agree_with_the_journal(registered: tuple[StoredRange, ...]) -> None:
    assert list(contradictions(JOURNALED, registered)) == []


@pytest.mark.parametrize(
    ("registered", "text"),
    [
        ((), r"offsets .* and none"),
        ((stored(0, 19, part("s3://b/compacted.parquet", 16, 7, expected=20)),), "offsets"),
        ((stored(0, 20, part("s3://b/compacted.parquet", 16, 7)),), "expected rows 20 and 16"),
        ((stored(0, 20, part("s3://b/compacted.parquet", 16, 8, expected=20)),), "digest .*7 and .*8"),
        ((stored(0, 20, part("s3://b/compacted.parquet", 15, 7, expected=20)),), "rows 16 and 15"),
        ((stored(0, 12, part("s3://b/a.parquet", 12, 3)), stored(12, 20, part("s3://b/b.parquet", 7, 9))), "20 and 19"),
    ],
)
def test_changed_ranges_contradict_the_journal(registered: tuple[StoredRange, ...], text: str) -> None:
    (fault,) = contradictions(JOURNALED, registered)
    assert re.search(text, fault.message), fault.message
    assert (fault.partition, fault.start_offset) == (0, 0)
