"""A table partitioned by columns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import ConfigError
from archiver.storage.objects import ObjectStore
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.compact.report import CompactEvent, GroupsCommitted, TopicCompaction
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.refill.report import Fate
from archiver.upkeep.repartition import repartition
from archiver.upkeep.reprocess.job import Reprocess
from archiver.upkeep.verify.job import Verify, VerifyOptions
from archiver.upkeep.verify.report import VerifiedTopic
from catalog.errors import PartitioningChanged
from catalog.registry import Registry
from tests.fault.soak.told import problems
from tests.support.archive import partitioned
from tests.support.archive.job_runs import archive_once, read, run, without_registry
from tests.support.archive.partitioned import (
    PARTITIONS,
    PROTO,
    TERMS,
    check_files,
    partition_of,
    settings,
    undecodable,
)
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg
from tests.support.catalog.foreign_writes import remove_file, rewrite, set_main, table_of
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.storage.foreign_deletion import delete_object

pytestmark = pytest.mark.integration

WRONG = PROTO.replace("bytes blob", "string blob")
"""Many values aren't read by it, as they are no text."""
FEW = 48
"""Records of a day, for some 40 files. There are tombstones, values that are no order, and all regions among them."""
MANY = 200


def produce(stack: Stack, topic: str, turn: int, count: int = FEW) -> None:
    partitioned.produce(stack, topic, turn, count=count)


def archived(stack: Stack, folder: Path, turns: int = 2, count: int = FEW, **more: object) -> tuple[Path, str]:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: settings(folder, **more)})  # type: ignore[arg-type]
    for turn in range(turns):
        produce(stack, topic, turn, count)
        archive_once(config, topic, engine=InlineEngine())
    return config, topic


def equal(stack: Stack, config: Path, topic: str) -> bool:
    kafka = from_kafka(stack, topic, PARTITIONS)
    return bool(kafka) and from_archive(config, topic, PARTITIONS) == kafka


def test_rows_are_in_their_partitions_and_ranges_in_many_files(stack: Stack, tmp_path: Path) -> None:
    config, topic = archived(stack, tmp_path, count=MANY)
    table = table_of(stack, config, topic)
    assert [field.name for field in table.spec().fields] == [
        "ingest_day",
        "val_customer_region",
        "key_raw_bucket",
        "val_sku_trunc",
    ]
    (files,) = check_files(table).values()
    with Registry(load_config(config).registry.dsn) as registry:
        (row,) = registry.topics.every()
        ranges = registry.rows.expected_ranges(row)
    assert len(ranges) == 2 * PARTITIONS
    places = {
        (
            row["kafka"]["partition"],
            row["kafka"]["offset"] // (MANY // PARTITIONS),
            partition_of(table.schema(), table.spec(), row),
        )
        for row in read(stack, config, topic).to_pylist()
    }
    assert sum(len(range_.files) for range_ in ranges) == files == len(places)
    assert equal(stack, config, topic)


def test_decoded_again_rows_go_to_their_partitions(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "order.proto").write_text(WRONG)
    config, topic = archived(stack, tmp_path, bloom_filters=[])
    values = [record.value for record in from_kafka(stack, topic, PARTITIONS)]
    assert undecoded(stack, config, topic) == undecodable(WRONG, values)
    assert undecodable(WRONG, values) > undecodable(PROTO, values) > 0
    (tmp_path / "order.proto").write_text(PROTO)
    report = Reprocess(load_config(config), topic, engine=InlineEngine()).run()
    assert report.commit_id
    table = table_of(stack, config, topic)
    check_files(table)
    assert undecoded(stack, config, topic) == undecodable(PROTO, values)
    assert equal(stack, config, topic)
    produce(stack, topic, 2)
    archive_once(config, topic, engine=InlineEngine())
    check_files(table_of(stack, config, topic))
    assert problems(config, topic) == []
    assert equal(stack, config, topic)


def undecoded(stack: Stack, config: Path, topic: str) -> int:
    rows = read(stack, config, topic)
    return sum(bool(value and value["__err__"]) for value in rows["val"].to_pylist())


@pytest.mark.parametrize("with_journal", [True, False])
def test_a_registry_is_rebuilt_with_staged_and_unstaged_files(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_journal: bool
) -> None:
    config, topic = archived(stack, tmp_path)
    produce(stack, topic, 2)
    with monkeypatch.context() as fault:
        fault.setenv("ARCHIVER_FAULT", "before_commit:raise")
        assert not run(config, topic).succeeded
    fresh = without_registry(stack, config, with_journal=with_journal)
    (done,) = Rebuild(load_config(fresh), [topic]).run()
    assert done.staged == PARTITIONS
    archive_once(fresh, topic, engine=InlineEngine())
    check_files(table_of(stack, fresh, topic))
    assert problems(fresh, topic) == []
    assert equal(stack, fresh, topic)


def test_what_a_table_lost_comes_back_to_its_partitions(stack: Stack, tmp_path: Path) -> None:
    config, topic = archived(stack, tmp_path)
    whole = check_files(table_of(stack, config, topic))
    snapshots = [snapshot.snapshot_id for snapshot in table_of(stack, config, topic).metadata.snapshots]
    set_main(stack, config, topic, snapshots[-2])
    report = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert report.rows(Fate.FROM_FILE) == FEW
    assert check_files(table_of(stack, config, topic)) == whole
    assert equal(stack, config, topic)

    first, lost, *_ = (file.file for file in table_of(stack, config, topic).scan().plan_files())
    remove_file(stack, config, topic, lost)
    report = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert report.rows(Fate.FROM_FILE) == lost.record_count
    assert check_files(table_of(stack, config, topic)) == whole
    assert equal(stack, config, topic)

    lost = first
    remove_file(stack, config, topic, lost)
    delete_object(ObjectStore.of_table(table_of(stack, config, topic)), lost.file_path)
    report = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert report.rows(Fate.FROM_KAFKA) == lost.record_count
    check_files(table_of(stack, config, topic))
    assert problems(config, topic) == []
    assert equal(stack, config, topic)


def test_refilled_rows_of_foreign_files_get_their_partition(stack: Stack, tmp_path: Path) -> None:
    """Footers of other engines don't name a file's partition; manifests do."""
    config, topic = archived(stack, tmp_path)
    rewrite(stack, config, topic)
    theirs = {task.file.file_path for task in table_of(stack, config, topic).scan().plan_files()}
    assert Compact(load_config(config), [topic], Wish(min_files=2), engine=InlineEngine).run().succeeded
    whole = check_files(table_of(stack, config, topic))
    lost = next(task.file for task in table_of(stack, config, topic).scan().plan_files())
    assert lost.file_path not in theirs
    remove_file(stack, config, topic, lost)
    report = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert report.rows(Fate.FROM_FILE) == lost.record_count
    assert check_files(table_of(stack, config, topic)) == whole
    assert problems(config, topic) == []
    assert equal(stack, config, topic)


def test_new_partitioning_leaves_staged_files_in_the_old_one(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, topic = archived(stack, tmp_path, 1, terms="day")
    produce(stack, topic, 1)
    with monkeypatch.context() as fault:
        fault.setenv("ARCHIVER_FAULT", "before_commit:raise")
        assert not run(config, topic).succeeded
    chosen = TERMS[1:]  # without time, for ranges of several days to share partitions
    for terms in (chosen, ["hour", "bucket(5, kafka.offset)"], chosen, "day"):
        before = table_of(stack, config, topic).spec()
        config.write_text(re.sub(r'"partition_by" = .*', f'"partition_by" = {json.dumps(terms)}', config.read_text()))
        error = run(config, topic).topics[0].error
        assert isinstance(error, ConfigError)
        assert "archiver repartition" in error.message
        assert repartition(load_config(config), topic, dry_run=True).was_changed is False
        assert table_of(stack, config, topic).spec() == before
        assert repartition(load_config(config), topic).was_changed
        assert not repartition(load_config(config), topic).was_changed
        produce(stack, topic, 2 + len(table_of(stack, config, topic).metadata.snapshots))
        archive_once(config, topic, engine=InlineEngine())
    table = table_of(stack, config, topic)
    counts = check_files(table)
    assert len(counts) == 3
    ranges = ranges_of(config)
    assert Compact(load_config(config), wish=Wish(min_files=2), engine=InlineEngine).run().succeeded
    compacted = check_files(table_of(stack, config, topic))
    assert compacted.keys() == counts.keys()
    assert compacted.total() <= counts.total() - 10
    assert ranges_of(config) == ranges
    assert problems(config, topic) == []
    assert equal(stack, config, topic)
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert ranges_of(fresh) == ranges
    assert problems(fresh, topic) == []


@pytest.mark.parametrize(
    "terms", [TERMS, pytest.param(TERMS[1:], marks=pytest.mark.slow), pytest.param(["month"], marks=pytest.mark.slow)]
)
def test_old_files_move_to_the_partitions_of_now_on_request(stack: Stack, tmp_path: Path, terms: list[str]) -> None:
    config, topic = archived(stack, tmp_path, 3, terms="day")
    repartitioned(config, topic, terms)
    produce(stack, topic, 3)
    archive_once(config, topic, engine=InlineEngine())
    before = check_files(table_of(stack, config, topic))
    now = table_of(stack, config, topic).spec().spec_id
    (old,) = before.keys() - {now}
    report = verified(config, topic)
    assert compact(config).planned_moves == 0, "not without being asked"

    planned = compact(config, dry_run=True, repartition=True)
    assert planned.planned_moves == before[old]
    assert check_files(table_of(stack, config, topic)) == before, "a dry run changes nothing"
    done = compact(config, repartition=True)
    assert (done.failures, done.error, done.done.moved) == ({}, None, before[old])
    check_moved(stack, config, topic, report)
    assert compact(config, repartition=True).done.moved == 0

    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert ranges_of(fresh) == ranges_of(config)
    check_moved(stack, fresh, topic, report)
    produce(stack, topic, 4)
    archive_once(fresh, topic, engine=InlineEngine())
    assert equal(stack, fresh, topic)
    assert problems(fresh, topic) == []


def test_files_move_back_and_a_rebuild_needs_no_journal(stack: Stack, tmp_path: Path) -> None:
    config, topic = archived(stack, tmp_path, 2)
    before = verified(config, topic)
    files = check_files(table_of(stack, config, topic)).total()
    repartitioned(config, topic, "day")
    asked = ["compact", topic, "--repartition", "--dry-run", "--json", "--config", str(config)]
    result = json.loads(CliRunner().invoke(app, asked).stdout.splitlines()[0])
    assert result["planned"]["moved_files"] == files
    assert "day" in result["partitioned_by"]
    assert compact(config, repartition=True).done.moved == files
    check_moved(stack, config, topic, before)
    repartitioned(config, topic, TERMS)
    assert compact(config, repartition=True).error is None
    check_moved(stack, config, topic, before)
    fresh = without_registry(stack, config, with_journal=False)
    Rebuild(load_config(fresh), [topic]).run()
    produce(stack, topic, 2)
    archive_once(fresh, topic, engine=InlineEngine())
    check_files(table_of(stack, fresh, topic))
    assert problems(fresh, topic) == []
    assert equal(stack, fresh, topic)


def test_files_never_move_to_partitions_not_configured(stack: Stack, tmp_path: Path) -> None:
    config, topic = archived(stack, tmp_path, 1, terms="day")
    config.write_text(config.read_text().replace('"partition_by" = "day"', '"partition_by" = "month"'))
    error = compact(config, repartition=True).error
    assert isinstance(error, ConfigError)
    assert "archiver repartition" in error.message
    with table_of(stack, config, topic).update_spec() as update:
        update.add_field("kafka.offset", "bucket[4]", "theirs")
    error = compact(config, repartition=True).error
    assert isinstance(error, PartitioningChanged)
    assert "bucket[4](11)" in str(error.context["found"])
    assert compact(config).error is None, "files are put together in the partitions that they have"


def test_files_stop_moving_once_the_partitioning_changes(stack: Stack, tmp_path: Path) -> None:
    config, topic = archived(stack, tmp_path, 2, terms="day")
    repartitioned(config, topic, TERMS)

    def change(event: CompactEvent) -> None:
        if isinstance(event, GroupsCommitted):
            repartitioned(config, topic, "month")

    wish = Wish(repartition=True)
    (done,) = Compact(load_config(config), wish=wish, observer=change, engine=InlineEngine).run().topics
    assert isinstance(done.error, PartitioningChanged)
    assert done.done.moved > 0
    assert equal(stack, config, topic)
    assert compact(config, repartition=True).error is None
    assert check_files(table_of(stack, config, topic)).keys() == {table_of(stack, config, topic).spec().spec_id}
    assert equal(stack, config, topic)


def repartitioned(config: Path, topic: str, terms: list[str] | str) -> None:
    config.write_text(re.sub(r'"partition_by" = .*', f'"partition_by" = {json.dumps(terms)}', config.read_text()))
    assert repartition(load_config(config), topic).was_changed


def compact(config: Path, *, dry_run: bool = False, repartition: bool = False) -> TopicCompaction:
    wish = Wish(repartition=repartition, dry_run=dry_run)
    (done,) = Compact(load_config(config), wish=wish, engine=InlineEngine).run().topics
    return done


def verified(config: Path, topic: str, *, asks_registry: bool = True) -> VerifiedTopic:
    job = Verify(
        load_config(config), [topic], engine=InlineEngine(), options=VerifyOptions(asks_registry=asks_registry)
    )
    (result,) = job.run().topics
    assert result.faults == ()
    return result


def check_moved(stack: Stack, config: Path, topic: str, before: VerifiedTopic) -> None:
    table = table_of(stack, config, topic)
    assert check_files(table).keys() == {table.spec().spec_id}
    assert verified(config, topic).root == before.root
    assert verified(config, topic, asks_registry=False).root == before.root
    assert problems(config, topic) == []
    assert equal(stack, config, topic)


def ranges_of(config: Path) -> list[tuple[int, int, int, int]]:
    with Registry(load_config(config).registry.dsn) as registry:
        (row,) = registry.topics.every()
        return [
            (range_.partition, range_.start_offset, range_.end_offset, range_.rows)
            for range_ in registry.rows.expected_ranges(row)
        ]


def test_filters_find_the_same_rows_and_open_fewer_files(stack: Stack, tmp_path: Path) -> None:
    config, topic = archived(stack, tmp_path, 1)
    table = table_of(stack, config, topic)
    name = load_config(config).topic(topic).table
    files = len(list(table.scan().plan_files()))
    every: list[Any] = read(stack, config, topic).to_pylist()
    regions = [((row["val"] or {}).get("customer") or {}).get("region") for row in every]
    for condition, count in (
        ("val.customer.region = 'eu'", regions.count("eu")),
        ("val.customer.region = ''", regions.count("")),
        ("val.customer.region is null", regions.count(None)),
        ("val.sku = 'A-1'", sum((row["val"] or {}).get("sku") == "A-1" for row in every)),
    ):
        assert len(rows_of_pyiceberg(stack, name, condition)) == count > 0
        assert len(rows_of_duckdb(stack, name, condition)) == count
        assert len(list(table.scan(row_filter=condition).plan_files())) < files
