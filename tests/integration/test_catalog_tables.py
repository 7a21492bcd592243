"""Tables in a real REST catalog and object store."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from pyiceberg.types import LongType, StringType

from catalog.errors import CatalogDenied, CatalogRefused, NewerFormat, NotOurTable, TableMissing, TopicRecreated
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Committed, OffsetsMoved
from catalog.iceberg.schema_change import SchemaChange
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import PartitionOffset, TopicRow, new_id
from schema_mapping.row import PartitionSource
from tests.support.catalog.catalog_files import DAY, assigned, bare, made, new_topic, written
from tests.support.catalog.choice import CATALOG, of_the_stacks_own_catalog
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration


@pytest.fixture
def catalog(stack: Stack) -> Iterator[TableCatalog]:
    with TableCatalog(stack.catalog_properties) as catalog:
        yield catalog


@pytest.fixture
def topic() -> TopicRow:
    return new_topic()


def seen(stack: Stack, topic: TopicRow) -> Table:
    return load_catalog("elsewhere", **stack.catalog_properties).load_table(topic.table)


class TestMaking:
    def test_ids_layout_and_properties_are_ours(self, stack: Stack, catalog: TableCatalog, topic: TopicRow):
        assignment = assigned("id", "amount")
        table = made(catalog, topic, assignment)
        iceberg = seen(stack, topic)
        assert iceberg.schema() == assignment.iceberg_schema
        assert iceberg.metadata.table_uuid == table.uuid
        assert iceberg.metadata.format_version == 2
        assert str(iceberg.spec().fields[0]) == "1000: ingest_day: day(13)"
        assert [field.source_id for field in iceberg.sort_order().fields] == [10, 11]
        assert iceberg.properties["archiver.topic"] == topic.topic
        assert iceberg.properties["write.metadata.metrics.column.val.amount"] == "truncate(16)"
        assert table.last_column_id == assignment.iceberg_schema.highest_field_id
        assert (table.offsets, table.ledger_version, table.snapshot_id) == ({}, 1, None)

    @pytest.mark.parametrize("partition_by", ["hour", "day", "month", "year"])
    @pytest.mark.parametrize("partition_source", ["nested", "flat"])
    def test_every_partitioning_is_read_back(
        self, stack: Stack, catalog: TableCatalog, topic: TopicRow, partition_by: str, partition_source: PartitionSource
    ):
        assignment = assigned(partition_source=partition_source)
        table = made(catalog, topic, assignment, partition_by)
        (column,) = table.partitioning.columns
        assert (column.transform, column.name) == (partition_by, f"ingest_{partition_by}")
        later = DAY + timedelta(days=40, hours=5)
        ranges = [written(table, assignment, 0, 0, 3), written(table, assignment, 0, 3, 5, time=later)]
        assert isinstance(catalog.commit(table, ranges, commit_id=new_id()), Committed)
        column = "ingest_timestamp" if partition_source == "flat" else "kafka.ingest_timestamp"
        pruned = seen(stack, topic).scan(row_filter=f"{column} >= '{later.isoformat()}'")
        assert [task.file.record_count for task in pruned.plan_files()] == [2]
        assert pruned.to_arrow().num_rows == 2

    def test_a_table_that_is_there_is_left_as_it_is(self, catalog: TableCatalog, topic: TopicRow):
        first = made(catalog, topic, assigned())
        second = made(catalog, topic, assigned("id"), "hour")
        assert (second.uuid, second.schema, second.partitioning.by) == (first.uuid, first.schema, "day(13)")

    def test_of_rivals_one_makes_it(self, stack: Stack, catalog: TableCatalog, topic: TopicRow):
        """SeaweedFS's catalog lets two succeed, once in a hundred times. Commits to the lost table fail."""
        in_new_namespace, assignment = replace(topic, table=f"{unique('n')}.{topic.topic}"), assigned("id")

        def run(_: int) -> ArchiveTable:
            with TableCatalog(stack.catalog_properties) as rival:
                return made(rival, in_new_namespace, assignment)

        with ThreadPoolExecutor(4) as pool:
            tables = {result.uuid: result for result in pool.map(run, range(4))}
        assert len(tables) == 1 or CATALOG == "embedded"
        stored = catalog.load(in_new_namespace)
        assert stored is not None
        ranges = [written(stored, assignment, 0, 0, 3)]
        assert isinstance(catalog.commit(tables.pop(stored.uuid), ranges, commit_id=new_id()), Committed)
        for lost in tables.values():
            with pytest.raises(TableMissing):
                catalog.commit(lost, ranges, commit_id=new_id())

    def test_its_storage_can_be_reached_from_elsewhere(self, catalog: TableCatalog, topic: TopicRow):
        table = made(catalog, topic, assigned())
        properties = pickle.loads(pickle.dumps(table.io_properties))
        assert load_file_io(properties).new_input(table.iceberg.metadata_location).exists()

    def test_no_table_is_none(self, catalog: TableCatalog, topic: TopicRow):
        assert catalog.load(topic) is None


class TestOwnership:
    def test_tables_of_others_are_refused(self, stack: Stack, catalog: TableCatalog, topic: TopicRow):
        made(catalog, topic, assigned())
        for stranger, error in (
            (replace(topic, topic="payments"), NotOurTable),
            (replace(topic, cluster_id="elsewhere"), NotOurTable),
            (replace(topic, topic_id=uuid4()), TopicRecreated),
        ):
            with pytest.raises(error):
                catalog.load(stranger)
        with seen(stack, topic).transaction() as transaction:
            transaction.set_properties({"archiver.format-version": "2"})
        with pytest.raises(NewerFormat):
            catalog.load(topic)

    def test_a_table_that_the_archiver_did_not_make(self, stack: Stack, catalog: TableCatalog, topic: TopicRow):
        elsewhere = load_catalog("elsewhere", **stack.catalog_properties)
        elsewhere.create_namespace_if_not_exists("kafka")
        elsewhere.create_table(topic.table, assigned().iceberg_schema)
        with pytest.raises(NotOurTable, match="was not made by the archiver"):
            made(catalog, topic, assigned())

    def test_a_table_dropped_under_us(self, stack: Stack, catalog: TableCatalog, topic: TopicRow):
        table = made(catalog, topic, assigned())
        load_catalog("elsewhere", **stack.catalog_properties).drop_table(topic.table)
        with pytest.raises(TableMissing, match="fresh registry"):
            catalog.commit(table, [bare(topic, 0, 0, 5)], commit_id=new_id())
        made(catalog, topic, assigned())
        with pytest.raises(TableMissing, match="fresh registry"):
            catalog.commit(table, [bare(topic, 0, 0, 5)], commit_id=new_id())

    @of_the_stacks_own_catalog("the Java catalog asks nobody who they are")
    def test_wrong_credentials(self, stack: Stack):
        wrong = stack.catalog_properties | {"credential": f"{stack.access_key}:hush"}
        with pytest.raises(CatalogDenied) as caught:
            TableCatalog(wrong)
        assert "hush" not in str(caught.value)

    @of_the_stacks_own_catalog("the Java catalog has one warehouse, whatever clients call it")
    def test_a_warehouse_that_is_not_there(self, stack: Stack, topic: TopicRow):
        with (
            pytest.raises(CatalogRefused, match="not found"),
            TableCatalog(stack.catalog_properties | {"warehouse": "s3://nowhere"}) as catalog,
        ):
            made(catalog, topic, assigned())


class TestCommitting:
    def test_rows_are_read_back_and_pruned_by_offset(self, stack: Stack, catalog: TableCatalog, topic: TopicRow):
        assignment = assigned("id")
        table = made(catalog, topic, assignment)
        ranges = [
            written(table, assignment, 0, 5, 10),
            bare(topic, 0, 10, 20),
            written(table, assignment, 0, 20, 30),
            written(table, assignment, 7, 0, 4),
        ]
        outcome = catalog.commit(table, ranges, commit_id=new_id())
        assert isinstance(outcome, Committed)
        iceberg = seen(stack, topic)
        rows = iceberg.scan().to_arrow().to_pylist()
        positions = sorted((row["kafka"]["partition"], row["kafka"]["offset"], row["val"]["id"]) for row in rows)
        assert positions == [
            (p, o, o) for p, span in ((0, (*range(5, 10), *range(20, 30))), (7, range(4))) for o in span
        ]
        pruned = iceberg.scan(row_filter="kafka.partition = 0 and kafka.offset >= 20")
        (task,) = pruned.plan_files()
        assert ranges[2].file is not None
        assert task.file.file_path == ranges[2].file.path
        assert catalog.load(topic).offsets == {  # type: ignore[union-attr]
            0: PartitionOffset(next_offset=30, leader_epoch=2),
            7: PartitionOffset(next_offset=4, leader_epoch=2),
        }

    def test_columns_and_the_rows_that_need_them_arrive_together(
        self, stack: Stack, catalog: TableCatalog, topic: TopicRow
    ):
        before = assigned("id")
        table = made(catalog, topic, before)
        catalog.commit(table, [written(table, before, 0, 0, 2)], commit_id=new_id())
        after = assigned("id", "amount", state=before.state)
        ranges = [written(table, after, 0, 2, 4)]
        outcome = catalog.commit(table, ranges, change=SchemaChange.of(after), commit_id=new_id())
        assert isinstance(outcome, Committed)
        iceberg = seen(stack, topic)
        assert iceberg.schema() == after.iceberg_schema
        snapshot = iceberg.current_snapshot()
        assert snapshot is not None
        assert snapshot.schema_id == iceberg.schema().schema_id
        amounts = {row["val"]["id"]: row["val"]["amount"] for row in iceberg.scan().to_arrow().to_pylist()}
        assert amounts == {0: None, 1: None, 2: 2, 3: 3}
        assert catalog.load(topic).ledger_version == 2  # type: ignore[union-attr]

    def test_columns_of_others_survive_and_keep_their_names(self, stack: Stack, catalog: TableCatalog, topic: TopicRow):
        before = assigned("id")
        table = made(catalog, topic, before)
        with seen(stack, topic).update_schema() as update:
            update.add_column("note", StringType())
            update.add_column(("val", "amount"), StringType())
        table = catalog.load(topic)
        assert table is not None
        after = assigned("id", "amount", state=before.state.at_least(table.last_column_id))
        catalog.commit(table, [written(table, after, 0, 0, 2)], change=SchemaChange.of(after), commit_id=new_id())
        columns = seen(stack, topic).schema()
        ours = next(entry.field_id for entry in after.state.entries if entry.name == "amount")
        assert columns.find_type("note") == StringType()
        assert columns.find_type("val.amount") == StringType()
        assert columns.find_field(ours).name == f"amount_{ours}"
        assert columns.find_field(ours).field_type == LongType()
        rows = seen(stack, topic).scan().to_arrow().to_pylist()
        assert sorted((row["val"]["amount"], row["val"][f"amount_{ours}"]) for row in rows) == [(None, 0), (None, 1)]

    def test_commits_of_others_are_no_conflict_of_offsets(self, stack: Stack, catalog: TableCatalog, topic: TopicRow):
        assignment = assigned("id")
        table = made(catalog, topic, assignment)
        early = [written(table, assignment, 0, 0, 2), written(table, assignment, 0, 2, 4)]
        catalog.commit(table, early, commit_id=new_id())
        iceberg = seen(stack, topic)
        (stale,) = iceberg.scan(row_filter="kafka.offset < 2").plan_files()
        with iceberg.transaction() as transaction, transaction.update_snapshot().overwrite() as overwrite:
            overwrite.delete_data_file(stale.file)
        outcome = catalog.commit(table, [written(table, assignment, 0, 4, 6)], commit_id=new_id())
        assert isinstance(outcome, Committed)
        offsets = sorted(row["kafka"]["offset"] for row in seen(stack, topic).scan().to_arrow().to_pylist())
        assert offsets == [2, 3, 4, 5]

    def test_a_second_archive_of_the_same_offsets_moves(self, catalog: TableCatalog, topic: TopicRow):
        table = made(catalog, topic, assigned())
        first, rival = bare(topic, 0, 0, 5), bare(topic, 0, 0, 5)
        assert isinstance(catalog.commit(table, [first], commit_id=new_id()), Committed)
        assert isinstance(catalog.commit(table, [rival], commit_id=new_id()), OffsetsMoved)

    def test_a_table_that_is_no_longer_fresh_costs_a_try(self, stack: Stack, catalog: TableCatalog, topic: TopicRow):
        assignment = assigned("id")
        before = made(catalog, topic, assignment)
        first, later = written(before, assignment, 0, 0, 2), written(before, assignment, 1, 0, 2)
        assert isinstance(catalog.commit(before, [first], commit_id=new_id(), is_fresh=True), Committed)
        outcome = catalog.commit(before, [later], commit_id=new_id(), is_fresh=True)
        assert isinstance(outcome, Committed)
        assert {number: end.next_offset for number, end in outcome.offsets.items()} == {0: 2, 1: 2}
        again = catalog.commit(before, [first], commit_id=new_id(), is_fresh=True)
        assert isinstance(again, OffsetsMoved), "a table of before the commit must not bring its range in twice"
        rows = seen(stack, topic).scan().to_arrow().to_pylist()
        assert sorted((row["kafka"]["partition"], row["kafka"]["offset"]) for row in rows) == [
            (partition, offset) for partition in range(2) for offset in range(2)
        ]

    def test_landed_commit_is_found_from_an_older_table(self, catalog: TableCatalog, topic: TopicRow):
        before = made(catalog, topic, assigned())
        first, commit_id = bare(topic, 0, 0, 5), new_id()
        landed = catalog.commit(before, [first], commit_id=commit_id, is_fresh=True)
        assert isinstance(landed, Committed)
        again = catalog.commit(before, [first], commit_id=commit_id, is_fresh=True)
        assert isinstance(again, Committed)
        assert again.snapshot_id == landed.snapshot_id

    def test_old_metadata_files_go(self, stack: Stack, catalog: TableCatalog, topic: TopicRow):
        table = made(catalog, topic, assigned())
        with seen(stack, topic).transaction() as transaction:
            transaction.set_properties({"write.metadata.previous-versions-max": "2"})
        locations = []
        for start in range(6):
            locations.append(seen(stack, topic).metadata_location)
            catalog.commit(table, [bare(topic, 0, start, start + 1)], commit_id=new_id())
        iceberg = seen(stack, topic)
        assert [entry.metadata_file for entry in iceberg.metadata.metadata_log] == locations[-2:]
        assert [iceberg.io.new_input(path).exists() for path in locations] == [False] * 4 + [True] * 2
