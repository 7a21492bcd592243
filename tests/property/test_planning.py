"""Plans equal pyiceberg's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan, Or
from pyiceberg.manifest import DataFile, ManifestEntryStatus
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table

from archiver.archive.plan import select_files
from archiver.archive.table_files import ManifestReader
from archiver.storage.segment import RowRange
from tests.support.archive.listed_table import SPECS, TIMES, ListedTable, data_file, position_deletes

PLACES = {0: [[1], [2], [None]], 1: [[]], 2: [[1, 0], [1, 1], [2, None]]}
TIME_COLUMNS = [("kafka.event_timestamp", 1_000), ("kafka.append_timestamp", 1_000), ("kafka.raw_timestamp", 1)]
PATHS = [f"file:///data/{number}" for number in range(30)]


def pairs(least: int, most: int) -> st.SearchStrategy[tuple[int, int] | None]:
    existing = st.tuples(st.integers(least, most), st.integers(least, most)).map(lambda pair: (min(pair), max(pair)))
    return st.none() | existing


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    files: list[DataFile]
    spec: PartitionSpec
    sequence: int
    deletes: bool
    status: ManifestEntryStatus


@st.composite
def manifests(draw: st.DrawFn) -> list[Manifest]:
    result = []
    paths = iter(draw(st.permutations(PATHS)))
    for _ in range(draw(st.integers(1, 4))):
        spec = draw(st.sampled_from(SPECS))
        position = st.sampled_from(PLACES[spec.spec_id])
        deletes = draw(st.booleans())
        files: list[DataFile] = []
        for path in (next(paths) for _ in range(draw(st.integers(1, 3)))):
            if deletes:
                spoken_of = st.lists(st.sampled_from(PATHS), min_size=2, max_size=2).map(
                    lambda two: (min(two), max(two))
                )
                files.append(position_deletes(path, draw(position), of=draw(st.none() | spoken_of)))
                continue
            times = st.dictionaries(st.sampled_from(sorted(TIMES)), st.none() | st.integers(0, 9))
            partitions, offsets = draw(pairs(0, 3)), draw(pairs(0, 40))
            files.append(data_file(path, draw(position), partitions=partitions, offsets=offsets, times=draw(times)))
        status = draw(st.sampled_from(ManifestEntryStatus))
        sequence = draw(st.integers(1, 9))
        result.append(Manifest(files=files, spec=spec, sequence=sequence, deletes=deletes, status=status))
    return result


@contextmanager
def table_of(manifests: list[Manifest]) -> Iterator[Table]:
    with tempfile.TemporaryDirectory(prefix="planning-") as folder:
        listed = ListedTable(Path(folder))
        for manifest in manifests:
            listed.add(
                manifest.files,
                spec=manifest.spec,
                sequence=manifest.sequence,
                deletes=manifest.deletes,
                status=manifest.status,
            )
        yield listed.table()


def judged(table: Table, wanted: BooleanExpression | None = None) -> dict[str, list[str]]:
    scan = table.scan() if wanted is None else table.scan(row_filter=wanted)
    return {task.file.file_path: sorted(file.file_path for file in task.delete_files) for task in scan.plan_files()}


@given(manifests=manifests())
def test_files_and_what_is_deleted_of_them(manifests: list[Manifest]) -> None:
    with table_of(manifests) as table:
        files = ManifestReader().files(table)
        result = {file.path: [delete.file_path for delete in file.position_deletes] for file in files}
        assert result == judged(table)
    assert len(files) == len(result)
    assert files.named(PATHS[::2]).keys() == result.keys() & set(PATHS[::2])


@given(
    manifests=manifests(),
    partition=st.integers(0, 3),
    start=st.integers(0, 40),
    length=st.integers(0, 40),
    since=st.none() | st.integers(0, 9),
)
def test_files_of_a_range(
    manifests: list[Manifest], *, partition: int, start: int, length: int, since: int | None
) -> None:
    expected: BooleanExpression = And(
        EqualTo("kafka.partition", partition),
        GreaterThanOrEqual("kafka.offset", start),
        LessThan("kafka.offset", start + length),
    )
    if since is not None:
        expected = And(expected, Or(*(GreaterThanOrEqual(name, since * unit) for name, unit in TIME_COLUMNS)))
    requests = RowRange(partition=partition, start_offset=start, end_offset=start + length, min_timestamp=since)
    with table_of(manifests) as table:
        files = list(select_files(ManifestReader().files(table), requests))
        assert {file.path for file in files} == judged(table, expected).keys()
    lows = [file.offsets.low if file.offsets else -1 for file in files]
    assert lows == sorted(lows)
