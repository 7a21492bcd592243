"""Searches of a table."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from archiver.archive.topic_archive import TopicArchive
from archiver.errors import ConfigError, ObjectMissing
from archiver.find import search as searching
from archiver.find.query import FindQuery
from archiver.find.report import (
    BY_COLUMN,
    BY_FILTER,
    BY_KEY,
    BY_POSITION,
    BY_RETIREMENT,
    BY_VALUES,
    FindReport,
)
from archiver.find.search import Search, Searched
from archiver.find.source import FindSource
from archiver.terminal.find_screen import explained, report_json
from catalog.errors import RegistryUnreachable
from catalog.record_metadata import OfOffsets
from catalog.value_terms import ValueTerms
from tests.support.archive.archived_rows import KnownMapping
from tests.support.archive.lake import Lake
from tests.support.archive.metadata_entries import entry_of
from tests.support.archive.shop_of_two_schemas import Shop

FILES = 16


def search(
    lake: Lake, ledger: Callable[..., Any] | None = None, registry: Callable[..., Any] | None = None, **options: Any
) -> Search:
    query, report = FindQuery.parse(**options), FindReport()

    def opens(bounded: Callable[[TopicArchive], frozenset[int]]) -> TopicArchive:
        return lake.archive(registry=registry, ledger=ledger, bounded=bounded)

    return Search(query=query, sources=[FindSource.open(query, opens, report)], report=report, parallel=1)


def offsets(result: Search) -> list[int]:
    return [offset for _, batch in result for offset in batch.column("offset").to_pylist()]


@pytest.fixture
def many(tmp_path: Path, archive: Any) -> Lake:
    lake = Lake(tmp_path / "lake", archive.rows)
    lake.bloom_filters = {100: 0.01}
    for number in range(FILES):
        start = number * 50
        rows = [
            archive.row(offset=start + at, key=b"%02d-%d" % (at, number), value=b"v" * 40, timestamp=start + at)
            for at in range(50)
        ]
        lake.add(archive.rows, archive.batch(rows), start, start + 50)
    return lake


def test_a_key_among_many_files_takes_small_reads_of_each(many: Lake) -> None:
    result = search(many, key="17-13")
    assert offsets(result) == [13 * 50 + 17]
    report = result.report
    assert +report.blocks_out == {BY_FILTER: FILES - 1}
    assert (report.files, report.files_opened, report.blocks_read, report.rows_judged) == (FILES, FILES, 1, 50)
    assert report.reads.requests <= 3 * FILES + 8, "open, end, a block of the filter; then pages of one row group"


def test_an_offset_reads_one_file(many: Lake) -> None:
    result = search(many, where="offset = 377")
    assert offsets(result) == [377]
    assert result.report.files_out == {BY_POSITION: FILES - 1}
    assert result.report.reads.requests <= 8


def test_metadata_finds_keys_and_offsets(many: Lake) -> None:
    many.entries = [
        entry_of(b"17-13", "case", "12"),
        entry_of(OfOffsets(0, 49, 51), "case", "12"),
        entry_of(OfOffsets(0, 600, 700), "case", "13"),
        entry_of(b"18-13", "case", "12", seconds=1),
        entry_of(b"18-13", "case", None, seconds=2),
    ]
    assert offsets(search(many, metadata=["case=12"])) == [13 * 50 + 17, 50, 49]
    assert offsets(search(many, metadata=["case=12"], where="offset < 50")) == [49]
    assert search(many, where="not meta['case'] exists").count() == FILES * 50 - 102, "17-13 lies among the 100 offsets"
    narrow = search(many, metadata=["case=12"], where="offset < 100")
    assert offsets(narrow) == [50, 49]
    assert narrow.report.files_out == {BY_POSITION: FILES - 2}


def test_unknown_metadata_opens_no_file(many: Lake) -> None:
    result = search(many, metadata=["case=12"])
    assert offsets(result) == []
    assert result.report.reads.requests == 0


@pytest.mark.parametrize("text", ["case", "=12", ""])
def test_metadata_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--meta"):
        FindQuery.parse(metadata=[text])


def test_keys_outside_of_all_bounds_open_no_file(many: Lake) -> None:
    result = search(many, key="zz")
    assert offsets(result) == []
    assert result.report.files_out == {BY_KEY: FILES}
    assert result.report.reads.requests == 0


def test_the_newest_file_answers_a_limit(many: Lake) -> None:
    result = search(many, limit=3)
    assert offsets(result) == [799, 798, 797]
    assert result.report.files_opened <= 2
    assert result.report.point_rows == 3
    oldest = search(many, limit=2, oldest_first=True)
    assert offsets(oldest) == [0, 1]


def test_a_search_reads_as_its_reader_does(many: Lake) -> None:
    result = search(many, where="offset >= 0")
    reader = iter(result)
    next(reader)
    reader.close()  # type: ignore[attr-defined]
    assert result.report.files_opened <= 3


def test_counts_and_files(many: Lake) -> None:
    assert search(many, where="key starts with '17-'").count() == FILES
    assert search(many, where="key starts with '17-' and offset < 100").count() == 2
    files = list(search(many, key="17-13").files())
    assert [topic for topic, _ in files] == ["orders"]
    assert files[0][1].rows == 50
    assert list(search(many, key="zz").files()) == []


def test_bounds_of_columns_rule_out_files(tmp_path: Path, archive: Any) -> None:
    shop = Shop(tmp_path, archive)
    result = search(shop.lake, lambda *_: shop.made.state, where="val.id = 25")
    assert offsets(result) == [25]
    assert result.report.files_out == {BY_COLUMN: 2}


def test_files_with_undecoded_records_are_never_ruled_out(tmp_path: Path, archive: Any) -> None:
    shop = Shop(tmp_path, archive, broken=14)
    result = search(shop.lake, lambda *_: shop.made.state, where="val.id = 99")
    assert offsets(result) == []
    assert result.report.unjudged == 1
    assert "1 record can't be judged" in result.notes()[0]


def test_retired_records_are_not_found(many: Lake) -> None:
    many.set(**{"archiver.first-offsets": '{"0": 120}'})
    result = search(many, where="offset < 125")
    assert sorted(offsets(result)) == [120, 121, 122, 123, 124]
    assert result.report.files_out[BY_RETIREMENT] == 2


def test_a_rewrite_during_a_search_changes_no_result(tmp_path: Path, archive: Any) -> None:
    lake = Lake(tmp_path / "lake", archive.rows)
    for start in range(0, 4_000, 2_000):
        rows = [archive.row(offset=start + at, key=b"k", timestamp=(start + at) // 3) for at in range(2_000)]
        lake.add(archive.rows, archive.batch(rows), start, start + 2_000)
    old = [Path(file.file_path.removeprefix("file://")) for file in lake.files()]
    result = search(lake)
    reader = iter(result)
    _, first = next(reader)
    lake.rewrite(lambda table: table.take([*reversed(range(table.num_rows))]))
    for path in old:
        path.unlink()
    searching_again = [offset for _, batch in reader for offset in batch.column("offset").to_pylist()]
    assert [*first.column("offset").to_pylist(), *searching_again] == [*reversed(range(4_000))]


def test_a_file_that_is_gone_without_a_rewrite_is_an_error(many: Lake) -> None:
    Path(many.files()[5].file_path.removeprefix("file://")).unlink()
    with pytest.raises(ObjectMissing):
        offsets(search(many))


def test_unknown_partitions_and_columns_are_refused(many: Lake, tmp_path: Path, archive: Any) -> None:
    with pytest.raises(ConfigError, match="the archive has no such partition"):
        search(many, partitions=[0, 9])
    shop = Shop(tmp_path / "shop", archive)
    with pytest.raises(ConfigError, match="the table has no such column"):
        search(shop.lake, lambda *_: shop.made.state, where="val.idd = 1")


def test_progress_is_observed(many: Lake) -> None:
    events: list[Searched] = []
    result = search(many, where="key starts with '17-'")
    result.observer = events.append
    assert len(offsets(result)) == FILES
    assert events[-1].done == events[-1].total == 2 * FILES


def test_several_topics_are_one_order(many: Lake) -> None:
    first = search(many, where="offset >= 790")
    second = search(many, where="offset >= 790")
    both = Search(query=replace(first.query, limit=4), sources=[*first.sources, *second.sources], report=first.report)
    assert [batch.column("offset").to_pylist() for _, batch in both] == [[799, 799, 798, 798]]
    assert searching.PARALLEL > 1


def with_kafka(table: pa.Table, name: str, change: Callable[[Any], Any]) -> pa.Table:
    kafka = table.column("kafka").combine_chunks()
    values = pa.array(map(change, kafka.field(name).to_pylist()), kafka.field(name).type)
    columns = [values if field.name == name else kafka.field(field.name) for field in kafka.type]
    column = pa.StructArray.from_arrays(columns, fields=[field.with_nullable(nullable=True) for field in kafka.type])
    at = table.schema.get_field_index("kafka")
    return table.set_column(at, table.schema.field(at).with_type(column.type), column)


def test_rows_outside_of_the_archive_are_no_records(many: Lake, archive: Any) -> None:
    """Other engines can insert such rows."""

    many.rewrite(lambda table: [with_kafka(table, "offset", lambda offset: {7: None, 8: 10**6}.get(offset, offset))])
    options: dict[str, Any] = {
        "where": "offset < 10 or offset = 1000000",
        "registry": lambda *_: KnownMapping(archive.rows),
    }
    assert offsets(search(many, oldest_first=True, **options)) == [0, 1, 2, 3, 4, 5, 6, 9]
    assert search(many, **options).count() == 8


def test_times_between_milliseconds_before_1970_are_found(many: Lake, archive: Any) -> None:
    """Other engines can write microseconds. A record has the nearer millisecond."""
    moment = datetime(1969, 12, 31, 23, 59, 59, 999001, tzinfo=UTC)
    many.rewrite(lambda table: [with_kafka(table, "event_timestamp", lambda _: moment)])
    mapping = KnownMapping(archive.rows)
    assert search(many, where="time = 0", registry=lambda *_: mapping).count() == FILES * 50


@pytest.fixture
def valued(tmp_path: Path, archive: Any) -> Lake:
    lake = Lake(tmp_path / "valued", archive.rows)
    for number in range(4):
        start = number * 500
        headers = [(b"trace", b"t%d" % number)] if number == 0 else []
        rows = [
            archive.row(
                offset=start + at,
                key=[b"a", b"k%d" % number, b"z"][at % 3],
                value=random.Random(start + at).randbytes(60),
                headers=headers,
            )
            for at in range(500)
        ]
        lake.add(archive.rows, archive.batch(rows), start, start + 500)
    return lake


@pytest.mark.parametrize(
    ("options", "count", "left"),
    [
        ({"key": "k1"}, 167, 1),
        ({"key": "k5"}, 0, 0),
        ({"headers": ["trace=t0"]}, 500, 1),
        ({"headers": ["trace=t1"]}, 0, 0),
        ({"where": "header['trace'] exists"}, 500, 1),
        ({"where": "header['span'] exists or key = 'k2'"}, 167, 1),
        ({"where": "not header['trace'] exists"}, 1_500, 4),
        ({"where": "not key = 'k1'"}, 1_833, 4),
    ],
)
def test_values_of_files_rule_out(valued: Lake, options: dict[str, Any], count: int, left: int) -> None:
    result = search(valued, **options)
    assert result.count() == count
    assert result.report.files_opened == left
    assert result.report.files_out[BY_VALUES] == 4 - left
    if not left:
        assert result.report.reads.requests == 0
    valued.values.clear()  # the registry is away: the sets in the files say the same, but files are opened
    opened = search(valued, **options)
    assert opened.count() == count
    assert opened.report.files_opened == 4
    assert opened.report.blocks_out[BY_VALUES] == 4 - left
    assert opened.report.reads.requests <= 2 * (4 - left) + 12 * left


def test_duckdb_finds_the_same_in_chosen_files(valued: Lake) -> None:
    result = search(valued, key="k2")
    chosen = [file.path.removeprefix("file://") for _, file in result.files()]
    every = [file.file_path.removeprefix("file://") for file in valued.files()]
    sql = "SELECT kafka.offset FROM read_parquet(?) WHERE key.__raw__ = ? ORDER BY 1 DESC"
    scans = [[row[0] for row in duckdb.execute(sql, [paths, b"k2"]).fetchall()] for paths in (chosen, every)]
    assert (len(chosen), len(every)) == (1, 4)
    assert scans[0] == scans[1] == offsets(search(valued, key="k2", limit=500))


@pytest.mark.parametrize(
    ("where", "expected", "opened"),
    [
        ("val.id >= 25", range(25, 30), 1),
        ("val.id < 3", range(3), 1),
        ("val.id > 8 and val.id <= 11", range(9, 12), 2),
        ("val.id != 7", [it for it in range(30) if it != 7], 3),
        ("val.name < 'c'", range(2), 1),
        ("val.name starts with 'z'", [25], 1),
        ("val.name ends with 'z' and val.id > 3", [25], 3),
        ("val.name contains 'b'", [1], 3),
        ("not val.id >= 3", range(3), 3),
    ],
)
def test_columns_compare_in_every_way(
    tmp_path: Path, archive: Any, where: str, expected: Sequence[int], opened: int
) -> None:
    shop = Shop(tmp_path, archive)
    result = search(shop.lake, lambda *_: shop.made.state, where=where)
    assert offsets(result) == [*reversed(expected)]
    assert result.report.files_opened <= opened
    assert shop.offsets(where) == [*expected]


def test_an_error_of_the_registry_fails_no_search(valued: Lake) -> None:
    class Away(dict[str, ValueTerms]):
        def items(self) -> Any:
            raise RegistryUnreachable("it is away")

    valued.values = Away()
    result = search(valued, key="k1")
    assert result.count() == 167
    assert result.report.files_out == {}
    assert result.report.registry_error == "it is away"
    texts = [text.plain for text in explained(result.report)]
    assert texts[1] == "registry: no file was ruled out by its values: it is away"
    assert report_json(result.report)["registry_error"] == "it is away"


def test_the_registry_is_queried_once_if_it_is_away(valued: Lake) -> None:
    queries = []

    class Away(dict[str, ValueTerms]):
        def items(self) -> Any:
            queries.append(1)
            raise RegistryUnreachable("it is away")

    valued.values = Away()
    result = search(valued, key="k1")
    result.sources = [*result.sources, *search(valued, key="k1").sources]
    assert result.count() == 2 * 167
    assert len(queries) == 1


def test_a_record_takes_few_requests(valued: Lake) -> None:
    result = search(valued, key="k1", limit=1)
    assert len(offsets(result)) == 1
    assert result.report.reads.requests <= 12
