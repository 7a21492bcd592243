"""Files planned from compact columns are those that pyiceberg plans from whole manifests, and so are their deletes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan, Or
from pyiceberg.manifest import DataFile, ManifestEntryStatus
from pyiceberg.table import Table

from archiver.replay.plan import select
from archiver.rows.table_files import ManifestReader
from archiver.storage.segment import RowRange
from tests.archiver.rows.listed_table import SPECS, TIMES, ListedTable, data_file, position_deletes

PLACES = {0: [[1], [2], [None]], 1: [[]], 2: [[1, 0], [1, 1], [2, None]]}
PATHS = [f"file:///data/{number}" for number in range(30)]


def pairs(least: int, most: int) -> st.SearchStrategy[tuple[int, int] | None]:
    known = st.tuples(st.integers(least, most), st.integers(least, most)).map(lambda pair: (min(pair), max(pair)))
    return st.none() | known


@st.composite
def tables(draw: st.DrawFn) -> ListedTable:
    """Manifests of data files and of position deletes, under three specs, with sequence numbers in any order."""
    listed = ListedTable(Path(tempfile.mkdtemp(prefix="planning-")))
    paths = iter(draw(st.permutations(PATHS)))
    for _ in range(draw(st.integers(1, 5))):
        spec = draw(st.sampled_from(SPECS))
        place = st.sampled_from(PLACES[spec.spec_id])
        deletes = draw(st.booleans())
        files: list[DataFile] = []
        for path in (next(paths) for _ in range(draw(st.integers(1, 4)))):
            if deletes:
                spoken_of = st.tuples(st.sampled_from(PATHS), st.sampled_from(PATHS)).map(
                    lambda two: (min(two), max(two))
                )
                files.append(position_deletes(path, draw(place), of=draw(st.none() | spoken_of)))
                continue
            times = st.dictionaries(st.sampled_from(sorted(TIMES)), st.none() | st.integers(0, 9))
            partitions, offsets = draw(pairs(0, 3)), draw(pairs(0, 40))
            files.append(data_file(path, draw(place), partitions=partitions, offsets=offsets, times=draw(times)))
        status = draw(st.sampled_from(ManifestEntryStatus))
        listed.add(files, spec=spec, sequence=draw(st.integers(1, 9)), deletes=deletes, status=status)
    return listed


def judged(table: Table, wanted: BooleanExpression | None = None) -> dict[str, list[str]]:
    scan = table.scan() if wanted is None else table.scan(row_filter=wanted)
    return {task.file.file_path: sorted(each.file_path for each in task.delete_files) for task in scan.plan_files()}


@given(listed=tables())
def test_files_and_what_is_deleted_of_them(listed: ListedTable) -> None:
    table = listed.table()
    files = ManifestReader().files(table)
    found = {file.path: [each.file_path for each in file.position_deletes] for file in files}
    assert found == judged(table)
    assert len(files) == len(found)
    assert {path: file.path for path, file in files.named(PATHS[::2]).items()} == {
        path: path for path in found if path in PATHS[::2]
    }


@given(
    listed=tables(),
    partition=st.integers(0, 3),
    start=st.integers(0, 40),
    length=st.integers(0, 40),
    since=st.none() | st.integers(0, 9),
)
def test_files_of_a_range(listed: ListedTable, partition: int, start: int, length: int, since: int | None) -> None:
    table = listed.table()
    wanted: BooleanExpression = And(
        EqualTo("kafka.partition", partition),
        GreaterThanOrEqual("kafka.offset", start),
        LessThan("kafka.offset", start + length),
    )
    if since is not None:
        # compared as numbers: a text in milliseconds would be pyiceberg's to parse
        late = [GreaterThanOrEqual(name, since * unit) for name, unit in _TIME_COLUMNS]
        wanted = And(wanted, Or(*late))
    found = list(
        select(
            ManifestReader().files(table),
            RowRange(partition=partition, start_offset=start, end_offset=start + length, min_timestamp=since),
        )
    )
    assert {file.path for file in found} == judged(table, wanted).keys()
    lows = [file.offsets.low if file.offsets else -1 for file in found]
    assert lows == sorted(lows)


_TIME_COLUMNS = [
    ("kafka.event_timestamp", 1_000),
    ("kafka.append_timestamp", 1_000),
    ("kafka.raw_timestamp", 1),
]
