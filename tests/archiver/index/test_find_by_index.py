"""Searches with an index miss nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from archiver.archive.topic_archive import TopicArchive
from archiver.errors import StorageError
from archiver.find.query import FindQuery
from archiver.find.report import BY_INDEX, FindReport
from archiver.find.search import Search
from archiver.find.source import FindSource
from archiver.index.lookup import IndexedTerm, TermLookup
from archiver.storage.parquet import writer
from archiver.terminal.find_screen import explained, report_json
from catalog.errors import RegistryUnreachable
from catalog.term_runs import IndexState
from tests.support.archive.lake import Lake
from tests.support.archive.memory_index import LakeIndex
from tests.support.archive.shop_of_two_schemas import Shop

FILES = 9
ROWS = 400
A_FILE = 60_000
"""Memory that is full after a file."""


def search(index: LakeIndex, ledger: Any = None, **options: Any) -> Search:
    report = FindReport()

    def opens(bounded: Callable[[TopicArchive], frozenset[int]]) -> TopicArchive:
        return index.archive(ledger=ledger, bounded=bounded)

    source = FindSource.open(FindQuery.parse(**options), opens, report)
    return Search(query=source.query, sources=[source], report=report, parallel=2)


def offsets(result: Search) -> list[int]:
    return [offset for _, batch in result for offset in batch.column("offset").to_pylist()]


@pytest.fixture
def orders(tmp_path: Path, archive: Any, monkeypatch: pytest.MonkeyPatch) -> LakeIndex:
    monkeypatch.setattr(writer, "GROUP_ROWS", ROWS // 4)
    lake = Lake(tmp_path / "lake", archive.rows)
    lake.values = _Nothing()
    names = list(range(FILES * ROWS))
    random.Random(1).shuffle(names)
    for number in range(FILES):
        start = number * ROWS
        rows = [
            archive.row(
                offset=offset,
                key=b"order-%d" % names[offset],
                headers=[(b"trace", b"t%d" % names[offset]), (b"kind", b"k%d" % (offset % 3))],
            )
            for offset in range(start, start + ROWS)
        ]
        lake.add(archive.rows, archive.batch(rows), start, start + ROWS)
    index = LakeIndex(lake, tmp_path, "key", "header:trace", "header:kind")
    index.place = names.index  # type: ignore[attr-defined]
    return index


class _Nothing(dict[str, Any]):
    def __setitem__(self, *_: Any) -> None:
        pass


def place(index: LakeIndex, name: int) -> int:
    return index.place(name)  # type: ignore[attr-defined, no-any-return]


def test_a_key_reads_one_leaf_and_one_row_group(orders: LakeIndex) -> None:
    report = orders.build()
    assert (report.files, report.runs, report.left, report.failures) == (FILES, 3, 0, [])
    result = search(orders, key="order-1234")
    assert offsets(result) == [place(orders, 1234)]
    done = result.report
    assert done.files_out[BY_INDEX] == FILES - 1
    assert (done.files_opened, done.blocks_read, done.blocks_out[BY_INDEX]) == (1, 1, 3)
    assert (done.index_runs, done.index_leaves, done.index_reads.requests) == (1, 1, 2)
    assert offsets(search(orders, headers=["trace=t77"])) == [place(orders, 77)]


def test_absent_values_open_no_file(orders: LakeIndex) -> None:
    orders.build()
    result = search(orders, key="order-50000")
    assert offsets(result) == []
    assert (result.report.files_opened, result.report.reads.requests) == (0, 0)
    texts = [text.plain for text in explained(result.report)]
    assert texts[0] == "manifests: 9 files; ruled out 9 by the index; 0 files opened"
    assert texts[1].startswith("index: 1 run, 1 leaf read with 2 requests, ")
    assert report_json(result.report)["index_runs"] == 1


@pytest.mark.parametrize(
    ("where", "opened"),
    [
        ("key = 'order-5' or key = 'order-6'", 2),
        ("key in ('order-5', 'order-6', 'order-70000')", 2),
        ("key = 'order-5' and header['trace'] = 't6'", 0),
        ("not key = 'order-5'", FILES),
        ("key = 'order-5' or offset = 3", 2),
        ("key > 'order-5'", FILES),
        ("header['other'] = 't6'", FILES),
        ("header['kind'] = 'k1'", FILES),
        ("header['kind'] = 'k3'", 0),
    ],
)
def test_conditions_use_the_index_as_far_as_it_knows(orders: LakeIndex, where: str, opened: int) -> None:
    without = search(orders, where=where).count()
    orders.build()
    result = search(orders, where=where)
    assert result.count() == without
    assert result.report.files_opened <= opened


def test_new_files_are_read_until_they_are_indexed(orders: LakeIndex, archive: Any) -> None:
    orders.build()
    end = FILES * ROWS
    orders.lake.add(archive.rows, archive.batch([archive.row(offset=end, key=b"order-5")]), end, end + 1)
    result = search(orders, key="order-5")
    assert sorted(offsets(result)) == sorted([end, place(orders, 5)])
    assert result.report.files_opened <= 4
    assert orders.build().files == 1
    assert search(orders, key="order-900000").count() == 0


def test_rewritten_files_are_read_until_they_are_indexed(orders: LakeIndex) -> None:
    """Other engines can change values: an index only knows the files it read."""
    orders.build()
    orders.lake.rewrite()
    result = search(orders, key="order-50000")
    assert len(list(result.files())) == 1
    assert BY_INDEX not in result.report.files_out


def test_a_build_can_end_after_any_file(orders: LakeIndex) -> None:
    turns = iter(range(1_000))
    orders.memory = 1
    report = orders.build(is_over=lambda: next(turns) >= 23)
    assert 0 < report.files < FILES
    assert report.left == FILES - report.files
    key = f"order-{next(name for name in range(FILES * ROWS) if place(orders, name) == ROWS * FILES - 1)}"
    assert offsets(search(orders, key=key)) == [ROWS * FILES - 1]
    assert orders.build().left == 0


def test_full_levels_merge(orders: LakeIndex) -> None:
    orders.memory = A_FILE
    report = orders.build()
    assert report.merged == 3
    levels = sorted(run.level for run in orders.registry.runs.values())
    assert levels == [0, 0, 0, 1, 1, 1]
    assert len(orders.objects()) == 6, "merged runs are deleted"
    for name in (0, 17, 3_599):
        assert offsets(search(orders, key=f"order-{name}")) == [place(orders, name)]
    kinds = [run for run in orders.registry.runs.values() if run.name == "header:kind"]
    assert sum(run.entries for run in kinds) == 6, "bitmaps: three values in each of two runs"


@pytest.mark.parametrize("injury", ["cut", "flipped", "swapped", "gone", "empty"])
def test_a_damaged_run_only_makes_searches_slower(orders: LakeIndex, injury: str) -> None:
    orders.build()
    run = next(run for run in orders.registry.runs.values() if run.name == "key")
    path = Path(run.path.removeprefix("file://"))
    data = path.read_bytes()
    header_run = next(run for run in orders.registry.runs.values() if run.name == "header:trace")
    match injury:
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "flipped":
            path.write_bytes(data[:200] + bytes([data[200] ^ 4]) + data[201:])
        case "swapped":
            path.write_bytes(Path(header_run.path.removeprefix("file://")).read_bytes())
        case "empty":
            path.write_bytes(b"")
        case _:
            path.unlink()
    result = search(orders, key="order-1234")
    assert offsets(result) == [place(orders, 1234)]
    assert result.report.index_error is not None
    assert result.report.files_out[BY_INDEX] == 0
    assert any(text.plain.startswith("index: files of some runs") for text in explained(result.report))
    orders.removal().drop([run.id])
    orders.build()
    again = search(orders, key="order-1234")
    assert offsets(again) == [place(orders, 1234)]
    assert again.report.files_opened == 1


def test_a_run_of_two_that_is_missing_uncovers_the_file(orders: LakeIndex) -> None:
    orders.memory = 1
    orders.build()
    runs = [run for run in orders.registry.runs.values() if run.name == "key"]
    Path(runs[0].path.removeprefix("file://")).unlink()
    for name in range(0, FILES * ROWS, 501):
        assert offsets(search(orders, key=f"order-{name}")) == [place(orders, name)]


def test_without_registry_searches_read_files(orders: LakeIndex) -> None:
    orders.build()

    def away(*_: Any) -> Any:
        raise RegistryUnreachable("it is away")

    orders.registry.state = away
    result = search(orders, key="order-7")
    assert offsets(result) == [place(orders, 7)]
    assert result.report.registry_error == "it is away"


def test_a_store_that_takes_nothing_fails_the_build_alone(orders: LakeIndex, tmp_path: Path) -> None:
    (tmp_path / "index").write_bytes(b"a file where the folder should be")
    with pytest.raises(StorageError):
        orders.build()
    assert orders.registry.runs == {}
    assert offsets(search(orders, key="order-7")) == [place(orders, 7)]


def test_too_many_values_read_the_files(orders: LakeIndex) -> None:
    orders.build()
    run = next(run for run in orders.registry.runs.values() if run.name == "key")
    state = IndexState(runs=(run,), files={("key", "path"): frozenset([run.id])})
    answers = TermLookup.of(state, [IndexedTerm("key", 5)], orders.store.objects, most=0)
    assert answers.problem == "the condition has more values than the index is read for"
    assert not answers.covers("key", ["path"]).any()


def test_retired_offsets_leave_with_merges(orders: LakeIndex) -> None:
    orders.memory = A_FILE
    orders.build(most_entries=0)
    orders.lake.set(**{"archiver.first-offsets": json.dumps({"0": ROWS * 2})})
    orders.build()
    merged = [run for run in orders.registry.runs.values() if run.level == 1 and run.name == "key"]
    assert [(run.entries, run.spans) for run in merged] == [(ROWS * 6, ((0, ROWS * 2, ROWS * 8),))]


def test_retired_offsets_are_not_indexed(orders: LakeIndex) -> None:
    orders.lake.set(**{"archiver.first-offsets": json.dumps({"0": ROWS * 2 + 5})})
    orders.build()
    (run,) = (run for run in orders.registry.runs.values() if run.name == "key")
    assert run.spans == ((0, ROWS * 2 + 5, ROWS * FILES),)
    assert orders.build().left == 0


def test_runs_are_parquet_that_any_reader_has(orders: LakeIndex) -> None:
    orders.build()
    run = next(run for run in orders.registry.runs.values() if run.name == "key")
    table = pq.read_table(run.path.removeprefix("file://"))
    assert table.column_names == ["transform_value", "partition", "offset", "granules"]
    assert table.num_rows == FILES * ROWS
    terms = table.column("transform_value").to_pylist()
    assert terms == sorted(terms)
    assert b"order-" not in Path(run.path.removeprefix("file://")).read_bytes()


def test_columns_of_all_schema_versions(tmp_path: Path, archive: Any) -> None:
    shop = Shop(tmp_path / "shop", archive, broken=4)
    shop.lake.values = _Nothing()
    index = LakeIndex(shop.lake, tmp_path, "val.id", "val.name", "key")

    def ledger(*_: Any) -> Any:
        return shop.made.state

    index.build(ledger=ledger)
    for where in ("val.id = 12", "val.name = 'm'", "val.id = 12 and val.name = 'm'", "val.id in (3, 12)"):
        result = search(index, ledger, where=where)
        assert offsets(result) == [*reversed(shop.offsets(where))]
        assert result.report.unjudged == 1, "the broken record is in a file that is read"
        assert result.report.files_opened == 2
    absent = search(index, ledger, where="val.id = 99")
    assert offsets(absent) == []
    assert absent.report.files_opened == 1
