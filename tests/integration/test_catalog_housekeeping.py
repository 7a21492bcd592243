"""Housekeeping of a real catalog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyiceberg.table.update import SetPropertiesUpdate

from catalog.iceberg.commit import Committed
from catalog.iceberg.expiry import SnapshotRetention
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import PartitionOffset, new_id
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg
from tests.support.catalog.catalog_files import assigned, bare, made, new_topic, written
from tests.support.catalog.choice import EACH_CATALOG, stack_with
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

COMMITS = 36
SMALL = SnapshotRetention(seconds=0.0, keep=6, least=3, batch=5)


@pytest.fixture(scope="module", params=EACH_CATALOG)
def stack(request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack_with(request.param, stack, tmp_path_factory) as judged:
        yield judged


@pytest.fixture
def catalog(stack: Stack) -> Iterator[TableCatalog]:
    with TableCatalog(stack.catalog_properties) as catalog:
        yield catalog


def test_a_table_stays_small_and_whole(stack: Stack, catalog: TableCatalog) -> None:
    topic, assignment = new_topic(), assigned("id")
    table = made(catalog, topic, assignment)
    catalog._update(table, (), (SetPropertiesUpdate(updates={"commit.manifest.min-count-to-merge": "10"}),))
    gone = 0
    lists: list[str] = []
    for number in range(COMMITS):
        range_ = written(table, assignment, 0, number, number + 1) if number % 5 else bare(topic, 0, number, number + 1)
        assert isinstance(catalog.commit(table, [range_], commit_id=new_id()), Committed)
        loaded = catalog.load(topic)
        assert loaded is not None
        lists += [snapshot.manifest_list for snapshot in loaded.iceberg.snapshots()[-1:]]
        gone += catalog.housekeep(loaded, SMALL)

    iceberg = stack.catalog().load_table(topic.table)
    assert gone >= 25
    assert len(iceberg.snapshots()) == COMMITS - gone
    assert len(iceberg.inspect.manifests()) < 10 + 2
    offsets = iceberg.scan(selected_fields=("kafka.offset",)).to_arrow().column("kafka").to_pylist()
    assert sorted(row["offset"] for row in offsets) == [number for number in range(COMMITS) if number % 5]
    tail = iceberg.scan(row_filter=f"kafka.offset >= {COMMITS - 4}").plan_files()
    assert len(list(tail)) == 3, "bounds of merged entries no longer prune"
    assert rows_of_duckdb(stack, topic.table) == rows_of_pyiceberg(stack, topic.table)
    loaded = catalog.load(topic)
    assert loaded is not None
    assert loaded.offsets == {0: PartitionOffset(next_offset=COMMITS, leader_epoch=2)}
    kept = {snapshot.manifest_list for snapshot in iceberg.snapshots()}
    for path in lists:
        assert iceberg.io.new_input(path).exists() == (path in kept)
