"""Tables with foreign partitioning."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Transaction
from pyiceberg.table.update import AddPartitionSpecUpdate, SetDefaultSpecUpdate
from pyiceberg.table.update.spec import UpdateSpec
from pyiceberg.transforms import BucketTransform, DayTransform, HourTransform, IdentityTransform, MonthTransform

from catalog.errors import NotOurTable, PartitioningChanged
from catalog.iceberg.append import prepare
from catalog.iceberg.commit import Backoff, Committed, commit
from catalog.iceberg.partition_spec import partitioning_for
from catalog.iceberg.partitions import placed
from catalog.iceberg.repartition import repartition_updates
from catalog.iceberg.rewrite_commit import Rewritten, commit_rewrite
from catalog.model import DataFileInfo, TranslatedRange, new_id
from catalog.partitioning import PartitionTerm, PartitionTuple
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from tests.support.catalog.memory import MemoryCatalog, file, span
from tests.support.catalog.table_changes import updates_of

DAY = 20_000
BY_DAY = PartitionTuple.of_time(DAY, "day(13)")
INGEST = "kafka.ingest_timestamp"
EVENT = "kafka.event_timestamp"
ADD_DAY = "ADD PARTITION FIELD days({}) AS `ingest_day`"
AT_ONCE = Backoff(pause=lambda _: None)

Change = Callable[[UpdateSpec], object]


@pytest.fixture
def lake(tmp_path: Path) -> MemoryCatalog:
    return MemoryCatalog(tmp_path)


def repartition(lake: MemoryCatalog, change: Change) -> None:
    def repartitioned(transaction: Transaction) -> None:
        update = UpdateSpec(transaction)
        change(update)
        update.commit()

    lake.change(*updates_of(lake.load().iceberg, repartitioned))


def by(column: str, transform: Any, name: str, *, instead_of: str = "ingest_day") -> Change:
    return lambda update: update.remove_field(instead_of).add_field(column, transform, name)


def staged(start: int, end: int, *, hours: tuple[int, int] | None = (3, 20), **more: Any) -> TranslatedRange:
    range_ = span(0, start, end)
    assert range_.file is not None
    if hours is not None:
        low, high = (struct.pack("<q", (DAY * 24 + hour) * 3_600_000_000 + 17) for hour in hours)
        more = {"lower_bounds": {13: low}, "upper_bounds": {13: high}, **more}
    return replace(range_, files=(replace(range_.file, **more),))


def append(lake: MemoryCatalog, *ranges: TranslatedRange) -> None:
    done = commit(load=lake.load, send=lake.send, ranges=ranges, change=None, commit_id=new_id(), backoff=AT_ONCE)
    assert isinstance(done, Committed)


def partitions(lake: MemoryCatalog) -> list[tuple[str, int]]:
    table = lake.load().iceberg
    snapshot = table.current_snapshot()
    assert snapshot is not None
    result = []
    for manifest in snapshot.manifests(lake.io):
        spec = table.specs()[manifest.partition_spec_id]
        for entry in manifest.fetch_manifest_entry(lake.io):
            assert entry.data_file.spec_id == spec.spec_id
            result.append((", ".join(str(field) for field in spec.fields), entry.data_file.partition[0]))
    return sorted(result)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (by(EVENT, DayTransform(), "event_day"), "day(12)"),
        (by(EVENT, DayTransform(), "ingest_day2"), "day(12)"),
        (by(INGEST, MonthTransform(), "some_month"), "month(13)"),
        (by("kafka.partition", IdentityTransform(), "p"), "identity(10)"),
        (lambda update: update.add_field("kafka.partition", IdentityTransform(), "p"), "identity(10)"),
        (lambda update: update.remove_field("ingest_day"), None),
    ],
)
def test_foreign_partitioning_is_named_with_advice(lake: MemoryCatalog, change: Change, found: str | None) -> None:
    assert lake.load().partitioning.by == "day(13)"
    repartition(lake, change)
    with pytest.raises(PartitioningChanged, match=r"ALTER TABLE kafka\.orders ") as error:
        _ = lake.load().partitioning
    assert isinstance(error.value, NotOurTable)
    assert error.value.context["expected"] in ("day(13)", "month(13)")
    assert error.value.context["found"].endswith(found or "not partitioned")


@pytest.mark.parametrize(
    ("changes", "statements"),
    [
        (
            [by(EVENT, DayTransform(), "event_day")],
            ["DROP PARTITION FIELD `event_day`", ADD_DAY],
        ),
        (
            [by(EVENT, DayTransform(), "a`b")],
            ["DROP PARTITION FIELD `a``b`", ADD_DAY],
        ),
        (
            [lambda update: update.rename_field("ingest_day", "day")],
            ["DROP PARTITION FIELD `day`", ADD_DAY],
        ),
        ([lambda update: update.remove_field("ingest_day")], [ADD_DAY]),
        ([lambda update: update.add_identity("kafka.partition")], ["DROP PARTITION FIELD `kafka.partition`"]),
        (
            [
                by(INGEST, HourTransform(), "ingest_hour"),
                lambda update: update.add_field("kafka.partition", IdentityTransform(), "p"),
            ],
            ["DROP PARTITION FIELD `p`"],
        ),
        (
            [
                by(EVENT, DayTransform(), "event_day"),
                lambda update: update.add_field("kafka.partition", IdentityTransform(), "p"),
            ],
            [
                "DROP PARTITION FIELD `event_day`",
                "DROP PARTITION FIELD `p`",
                ADD_DAY,
            ],
        ),
    ],
)
def test_the_statements_leave_our_field_alone(
    lake: MemoryCatalog, changes: list[Change], statements: list[str]
) -> None:
    for change in changes:
        repartition(lake, change)
    with pytest.raises(PartitioningChanged) as error:
        _ = lake.load().partitioning
    advised = error.value.message.partition("for example: ")[2].split("; ")
    assert advised == [f"ALTER TABLE kafka.orders {statement.format(INGEST)}" for statement in statements]


@pytest.mark.parametrize(
    ("changes", "statements"),
    [
        ([lambda update: update.add_identity("kafka.offset")], ["DROP PARTITION FIELD `kafka.offset`"]),
        (
            [lambda update: update.remove_field("kafka_partition_bucket")],
            ["ADD PARTITION FIELD bucket(4, kafka.partition) AS `kafka_partition_bucket`"],
        ),
        (
            [lambda update: update.remove_field("ingest_day")],
            [
                "DROP PARTITION FIELD `kafka_partition_bucket`",
                "ADD PARTITION FIELD days(kafka.ingest_timestamp) AS `ingest_day`",
                "ADD PARTITION FIELD bucket(4, kafka.partition) AS `kafka_partition_bucket`",
            ],
        ),
        (
            [
                lambda update: update.remove_field("kafka_partition_bucket"),
                lambda update: update.add_field("kafka.partition", BucketTransform(8), "b`8"),
            ],
            [
                "DROP PARTITION FIELD `b``8`",
                "ADD PARTITION FIELD bucket(4, kafka.partition) AS `kafka_partition_bucket`",
            ],
        ),
    ],
)
def test_the_statements_give_back_a_partitioning_by_columns(
    lake: MemoryCatalog, changes: list[Change], statements: list[str]
) -> None:
    table = lake.load()
    terms = (PartitionTerm("day", None), PartitionTerm("bucket[4]", "kafka.partition"))
    expected = partitioning_for(terms, table.schema, "nested", current=table.partitioning)
    lake.change(*repartition_updates(table, expected, "ID")[1])
    assert lake.load().partitioning == expected
    for change in changes:
        repartition(lake, change)
    with pytest.raises(PartitioningChanged) as error:
        _ = lake.load().partitioning
    assert error.value.message.partition("for example: ")[2].split("; ") == [
        f"ALTER TABLE kafka.orders {statement}" for statement in statements
    ]
    for statement in statements:
        repartition(lake, as_spark_does(statement))
    assert lake.load().partitioning == expected


def as_spark_does(statement: str) -> Change:
    drop = re.fullmatch(r"DROP PARTITION FIELD `(.+)`", statement)
    if drop is not None:
        return lambda update: update.remove_field(drop[1].replace("``", "`"))
    add = re.fullmatch(r"ADD PARTITION FIELD (days|bucket)\((?:(\d+), )?(\S+)\) AS `(.+)`", statement)
    assert add is not None
    transform = DayTransform() if add[1] == "days" else BucketTransform(int(add[2]))
    return lambda update: update.add_field(add[3], transform, add[4])


def test_another_unit_of_the_ingest_timestamp_is_followed(lake: MemoryCatalog) -> None:
    repartition(lake, by(INGEST, HourTransform(), "ingest_hour"))
    assert (lake.load().partitioning.by, lake.load().partition_source) == ("hour(13)", "nested")


@pytest.mark.parametrize("partitioned_by", ["day(13)", None])
@pytest.mark.parametrize(
    "change",
    [
        by(EVENT, DayTransform(), "event_day"),
        by(INGEST, HourTransform(), "ingest_hour"),
        by("kafka.partition", IdentityTransform(), "p"),
        lambda update: update.remove_field("ingest_day"),
    ],
)
def test_a_file_goes_to_the_partition_it_was_staged_for(
    lake: MemoryCatalog, change: Change, partitioned_by: str | None
) -> None:
    append(lake, staged(0, 5))
    repartition(lake, change)
    append(lake, staged(5, 10, partition=PartitionTuple.of_time(DAY, partitioned_by)))
    assert partitions(lake) == [("1000: ingest_day: day(13)", DAY)] * 2
    summary = lake.metadata.snapshots[-1].summary
    assert summary is not None
    assert (summary["added-records"], summary["total-records"]) == ("5", "10")


def test_files_of_two_partitionings_land_in_one_commit(lake: MemoryCatalog) -> None:
    repartition(lake, by(INGEST, HourTransform(), "ingest_hour"))
    hour = DAY * 24 + 3
    append(
        lake,
        staged(0, 5, partition=BY_DAY),
        staged(5, 10, hours=(3, 3), partition=PartitionTuple.of_time(hour, "hour(13)")),
        staged(10, 15, hours=(3, 3), partition=PartitionTuple.of_time(hour)),
        staged(15, 20),
    )
    day, hours = ("1000: ingest_day: day(13)", DAY), ("1001: ingest_hour: hour(13)", hour)
    assert partitions(lake) == [day, day, hours, hours]
    assert len(lake.metadata.snapshots) == 1


@pytest.mark.parametrize(
    ("more", "hours"),
    [
        ({"partition": PartitionTuple.of_time(DAY, "day(99)")}, (3, 20)),
        ({"partition": PartitionTuple.of_time(DAY, "day(12)")}, (3, 20)),
        ({"partition": PartitionTuple.of_time(DAY + 1)}, (3, 20)),
        ({"partition": PartitionTuple.of_time(DAY + 1, "day(13)")}, (3, 20)),
        ({}, None),  # from before it was kept, without bounds: days or hours?
    ],
)
def test_what_fits_no_partitioning_is_refused(lake: MemoryCatalog, more: Any, hours: tuple[int, int] | None) -> None:
    repartition(lake, by(INGEST, HourTransform(), "ingest_hour"))
    range_ = staged(0, 5, hours=hours, **more)
    assert range_.file is not None
    with pytest.raises(PartitioningChanged) as error:
        prepare(lake.load(), [range_], change=None, commit_id=new_id())
    assert error.value.context["file"] == range_.file.path
    assert lake.metadata.snapshots == []


def test_a_partitioning_that_the_table_forgot_is_refused(lake: MemoryCatalog) -> None:
    repartition(lake, by(INGEST, HourTransform(), "ingest_hour"))
    kept = [spec for spec in lake.metadata.partition_specs if spec.spec_id == lake.metadata.default_spec_id]
    lake.metadata = lake.metadata.model_copy(update={"partition_specs": kept})
    with pytest.raises(PartitioningChanged, match="stays staged"):
        prepare(lake.load(), [staged(0, 5, partition=BY_DAY)], change=None, commit_id=new_id())


@pytest.mark.parametrize("partition", [BY_DAY, PartitionTuple.of_time(DAY + 1, "day(13)")])
def test_removal_keeps_misplaced_rows_in_place(lake: MemoryCatalog, partition: PartitionTuple) -> None:
    append(lake, staged(0, 5, partition=BY_DAY))
    append(lake, staged(5, 10, hours=(27, 44), partition=PartitionTuple.of_time(DAY + 1, "day(13)")))
    (mixed,) = staged(0, 4, hours=(3, 40), partition=partition).files
    new = NewFile(file=mixed, spans=(RecordSpan(partition=0, start_offset=0, end_offset=10),))
    group = RewriteGroup(paths=tuple(lake.paths()), files=(new,))
    rewrite = Rewrite(commit_id=new_id(), reason="erase", schema_version=1, groups=(group,))
    done = commit_rewrite(
        load=lake.load, send=lake.send, rewrite=rewrite, change=None, changed=lambda _: (), backoff=AT_ONCE
    )
    assert isinstance(done, Rewritten)
    assert partitions(lake) == [("1000: ingest_day: day(13)", partition.time_value)]
    with pytest.raises(PartitioningChanged, match="stays staged"):
        prepare(lake.load(), [staged(10, 15, hours=(3, 40), partition=partition)], change=None, commit_id=new_id())


def test_a_rewritten_file_stays_in_its_partition(lake: MemoryCatalog) -> None:
    append(lake, staged(0, 5), staged(5, 10))
    old, kept = lake.paths()
    repartition(lake, by(EVENT, DayTransform(), "event_day"))
    new = RewriteGroup.of_file(old, file("file:///nowhere/new.parquet"))
    rewrite = Rewrite(commit_id=new_id(), reason="reprocess", schema_version=1, groups=(new,))
    done = commit_rewrite(
        load=lake.load, send=lake.send, rewrite=rewrite, change=None, changed=lambda _: (), backoff=AT_ONCE
    )
    assert isinstance(done, Rewritten)
    assert lake.paths() == sorted([kept, new.new_paths[0]])
    assert partitions(lake) == [("1000: ingest_day: day(13)", DAY)] * 2


def test_a_partitioning_that_is_changed_back_is_the_old_one(lake: MemoryCatalog) -> None:
    repartition(lake, by(EVENT, DayTransform(), "event_day"))
    specs = {spec.spec_id: spec for spec in lake.metadata.partition_specs}
    again = specs[0].model_copy(update={"spec_id": 7})
    lake.change(AddPartitionSpecUpdate(spec=again), SetDefaultSpecUpdate())
    assert lake.load().partitioning.by == "day(13)"
    append(lake, staged(0, 5, partition=BY_DAY))
    assert partitions(lake) == [("1000: ingest_day: day(13)", DAY)]


def test_a_found_file_is_placed_where_all_its_rows_fit(lake: MemoryCatalog) -> None:
    wide, narrow = (staged(0, 5, hours=hours).file for hours in ((3, 20), (3, 3)))
    assert wide is not None
    assert narrow is not None
    repartition(lake, by(INGEST, HourTransform(), "ingest_hour"))
    metadata = lake.load().iceberg.metadata
    assert placed(metadata, wide) == BY_DAY
    assert placed(metadata, narrow) == PartitionTuple.of_time(DAY * 24 + 3, "hour(13)")
    assert placed(metadata, replace(wide, upper_bounds={13: struct.pack("<q", 0)})) is None
    assert placed(metadata, DataFileInfo(path="p", size_bytes=1, rows=1)) is None
