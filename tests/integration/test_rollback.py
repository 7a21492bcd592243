"""A table set back, and its refill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pyiceberg.table.update import AssertTableUUID, RemoveSnapshotsUpdate
from typer.testing import CliRunner

from archiver.archive.topic_archive import open_archive
from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import InjectedFault
from archiver.ingest.job import ArchiveJob
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.refill.report import Fate, RefillReport
from catalog.errors import RolledBack
from tests.support.archive.job_runs import archive_once, without_registry
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.foreign_writes import change_values, compact, delete_rows, set_main, table_of, upgrade
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

PARTITIONS = 2


def produce(stack: Stack, topic: str, count: int = 10) -> None:
    stack.produce(
        topic, *({"key": b"k", "value": b"%d" % n, "partition": n % PARTITIONS} for n in range(count * PARTITIONS))
    )


@pytest.fixture
def archived(stack: Stack) -> tuple[Path, str, list[int]]:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    for _ in range(3):
        produce(stack, topic)
        archive_once(config, topic, engine=InlineEngine())
    return config, topic, [snapshot.snapshot_id for snapshot in table_of(stack, config, topic).metadata.snapshots]


def failure(config: Path, topic: str) -> Any:
    report = ArchiveJob(load_config(config), [topic], engine=InlineEngine()).run_once()
    ((partition, error),) = report.topics[0].failures
    assert partition is None
    return error


def status(config: Path, topic: str, *, exit_code: int) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["status", topic, "--json", "--config", str(config)])
    assert done.exit_code == exit_code, done.output
    (row,) = json.loads(done.stdout)["topics"]
    return row


def test_a_table_set_back_stops_its_topic(stack: Stack, archived: tuple[Path, str, list[int]]) -> None:
    config, topic, snapshots = archived
    set_main(stack, config, topic, snapshots[0])
    produce(stack, topic)
    for _ in range(2):
        error = failure(config, topic)
        assert type(error).__name__ == "RolledBack", error
        assert error.context["missing"] == "partition 0 [10, 30) 20 rows; partition 1 [10, 30) 20 rows"
        assert "archiver refill" in error.message
    assert table_of(stack, config, topic).metadata.current_snapshot_id == snapshots[0]


def test_a_table_set_forward_again_is_whole(stack: Stack, archived: tuple[Path, str, list[int]]) -> None:
    config, topic, snapshots = archived
    set_main(stack, config, topic, snapshots[1])
    assert type(failure(config, topic)).__name__ == "RolledBack"
    set_main(stack, config, topic, snapshots[2])
    produce(stack, topic)
    archive_once(config, topic, engine=InlineEngine())
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)


def refill(config: Path, topic: str, **options: Any) -> RefillReport:
    return RefillJob(load_config(config), topic, engine=InlineEngine(), **options).run()


def whole_again(stack: Stack, config: Path, topic: str) -> None:
    row = status(config, topic, exit_code=0)
    assert (row["holes"], row["problem"]) == ([], None)
    assert refill(config, topic).mended == ()
    produce(stack, topic, 3)
    archive_once(config, topic, engine=InlineEngine())
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)


def test_files_that_exist_come_back(stack: Stack, archived: tuple[Path, str, list[int]]) -> None:
    config, topic, snapshots = archived
    set_main(stack, config, topic, snapshots[0])
    row = status(config, topic, exit_code=1)
    assert row["problem"]["kind"] == "RolledBack"
    assert [
        (entry["partition"], entry["start_offset"], entry["end_offset"], entry["rows"]) for entry in row["holes"]
    ] == [(partition, start, start + 10, 10) for partition in range(PARTITIONS) for start in (10, 20)]
    shown = refill(config, topic, dry_run=True)
    assert (shown.rows(Fate.FROM_FILE), shown.commit_id) == (40, None)
    assert type(failure(config, topic)).__name__ == "RolledBack"
    done = refill(config, topic)
    assert (done.succeeded, done.was_back, done.rows(Fate.FROM_FILE)) == (True, True, 40)
    whole_again(stack, config, topic)


def test_files_that_are_gone_come_back_from_kafka(stack: Stack, archived: tuple[Path, str, list[int]]) -> None:
    config, topic, snapshots = archived
    files_of = table_of(stack, config, topic).inspect.data_files()["file_path"].to_pylist()
    set_main(stack, config, topic, snapshots[0])
    kept = table_of(stack, config, topic)
    for path in set(files_of) - set(kept.inspect.data_files()["file_path"].to_pylist()):
        kept.io.delete(path)
    done = refill(config, topic)
    assert (done.succeeded, done.rows(Fate.FROM_KAFKA)) == (True, 40)
    whole_again(stack, config, topic)


def test_rows_that_others_delete_are_told_and_archiving_goes_on(
    stack: Stack, archived: tuple[Path, str, list[int]]
) -> None:
    config, topic, _ = archived
    delete_rows(stack, config, topic, 1, range(13, 22))
    produce(stack, topic)
    error = failure(config, topic)
    assert type(error).__name__ == "RowsRemoved"
    assert error.context["missing"] == "partition 1 [13, 22) 9 rows"
    row = status(config, topic, exit_code=1)
    assert [entry["archived_to"] for entry in row["partitions"]] == [40, 40]
    assert [
        (entry["partition"], entry["start_offset"], entry["end_offset"], entry["rows"]) for entry in row["holes"]
    ] == [
        (1, 13, 20, 7),
        (1, 20, 22, 2),
    ]
    done = refill(config, topic)
    assert (done.succeeded, done.was_back, done.rows(Fate.FROM_FILE)) == (True, False, 9)
    whole_again(stack, config, topic)


def test_values_altered_by_another_engine_are_restored(stack: Stack, archived: tuple[Path, str, list[int]]) -> None:
    config, topic, _ = archived
    change_values(stack, config, topic, 1, 14)
    for _ in range(2):
        error = failure(config, topic)
        assert type(error).__name__ == "RowsAltered"
        assert error.context["altered"] == "partition 1 [10, 20) 10 rows"
        assert len(error.context["by"]) == 1
        produce(stack, topic)
    row = status(config, topic, exit_code=1)
    assert (row["holes"], row["altered"]) == (
        [],
        [{"partition": 1, "start_offset": 10, "end_offset": 20, "rows": 10}],
    )
    assert "kafka.partition = 1 AND kafka.offset >= 10 AND kafka.offset < 20" in error.message
    delete_rows(stack, config, topic, 1, range(10, 20))
    assert refill(config, topic).rows(Fate.FROM_FILE) == 10
    whole_again(stack, config, topic)


def test_a_table_that_others_upgraded_stops_its_topic_alone(
    stack: Stack, archived: tuple[Path, str, list[int]]
) -> None:
    config, topic, _ = archived
    upgrade(stack, config, topic)
    before = from_archive(config, topic, PARTITIONS)
    produce(stack, topic)
    error = failure(config, topic)
    assert (type(error).__name__, error.context["format_version"]) == ("FormatUpgraded", 3)
    assert status(config, topic, exit_code=1)["problem"]["kind"] == "FormatUpgraded"
    assert from_archive(config, topic, PARTITIONS) == before


def test_a_replay_of_a_table_set_back_is_refused(stack: Stack, archived: tuple[Path, str, list[int]]) -> None:
    config, topic, snapshots = archived
    set_main(stack, config, topic, snapshots[0])
    with pytest.raises(RolledBack, match="archiver refill"):
        open_archive(load_config(config), topic)


def test_rows_deleted_on_purpose_stay_gone_and_are_named_so(
    stack: Stack, archived: tuple[Path, str, list[int]]
) -> None:
    config, topic, _ = archived
    delete_rows(stack, config, topic, 1, range(13, 22))
    assert refill(config, topic, accept_removed=True).rows(Fate.ERASED) == 9
    row = status(config, topic, exit_code=0)
    assert (row["erased_records"], row["holes"], row["problem"]) == (9, [], None)
    produce(stack, topic)
    archive_once(config, topic, engine=InlineEngine())
    delete_rows(stack, config, topic, 1, [12])
    assert failure(config, topic).context["missing"].endswith("1 rows")
    assert refill(config, topic, accept_removed=True).rows(Fate.ERASED) == 1
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    row = status(fresh, topic, exit_code=0)
    assert (row["erased_records"], row["holes"], row["problem"]) == (10, [], None)


def test_what_nobody_has_is_lost_only_if_told_to(stack: Stack, archived: tuple[Path, str, list[int]]) -> None:
    config, topic, snapshots = archived
    files_of = table_of(stack, config, topic).inspect.data_files()["file_path"].to_pylist()
    set_main(stack, config, topic, snapshots[0])
    kept = table_of(stack, config, topic)
    for path in set(files_of) - set(kept.inspect.data_files()["file_path"].to_pylist()):
        kept.io.delete(path)
    cut = TopicPartition(topic, 1, 15)
    stack.admin.delete_records([cut])[cut].result(30)
    first = refill(config, topic)
    assert [(entry.hole.partition, entry.rows) for entry in first.of(Fate.LEFT)] == [(1, 10)]
    assert first.rows(Fate.FROM_KAFKA) == 30
    assert type(failure(config, topic)).__name__ == "RolledBack"
    second = refill(config, topic, accept_lost=True)
    assert (second.rows(Fate.FROM_KAFKA), second.rows(Fate.LOST)) == (5, 5)
    row = status(config, topic, exit_code=0)
    assert (row["lost_records"], row["holes"]) == (5, [])
    archive_once(config, topic, engine=InlineEngine())
    offsets = [seen.offset for seen in from_archive(config, topic, PARTITIONS) if seen.partition == 1]
    assert offsets == [*range(10), *range(15, 30)]


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
def test_a_refill_that_was_killed_is_run_again(
    stack: Stack, archived: tuple[Path, str, list[int]], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    config, topic, snapshots = archived
    set_main(stack, config, topic, snapshots[0])
    delete_rows(stack, config, topic, 0, [7, 8])
    monkeypatch.setenv("ARCHIVER_FAULT", f"{point}:raise")
    with pytest.raises(InjectedFault):
        refill(config, topic)
    monkeypatch.delenv("ARCHIVER_FAULT")
    assert refill(config, topic).rows(Fate.FROM_FILE) == (42 if point == "before_commit" else 0)
    whole_again(stack, config, topic)


def test_a_table_whose_whole_metadata_was_restored(stack: Stack, archived: tuple[Path, str, list[int]]) -> None:
    config, topic, snapshots = archived
    set_main(stack, config, topic, snapshots[0])
    old = {"archiver.offsets": '{"0":[10,0],"1":[10,0]}', "archiver.head": f"[{snapshots[0]},1]"}
    with table_of(stack, config, topic).transaction() as transaction:
        transaction.set_properties(old)
    table = table_of(stack, config, topic)
    expired = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": snapshots[1:]})
    stack.catalog().commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (expired,))
    assert type(failure(config, topic)).__name__ == "RolledBack"
    assert refill(config, topic).rows(Fate.FROM_FILE) == 40
    assert table_of(stack, config, topic).properties["archiver.offsets"] == '{"0":[30,0],"1":[30,0]}'
    whole_again(stack, config, topic)


def test_rebuilt_registry_reports_unknown_ranges_as_missing(
    stack: Stack, archived: tuple[Path, str, list[int]]
) -> None:
    config, topic, snapshots = archived
    set_main(stack, config, topic, snapshots[0])
    fresh = without_registry(stack, config, with_journal=False)
    Rebuild(load_config(fresh), [topic]).run()
    assert failure(fresh, topic).context["missing"] == "partition 0 [10, 30); partition 1 [10, 30)"
    done = refill(fresh, topic)
    assert (done.succeeded, done.commit_id, done.rows(Fate.LEFT)) == (False, None, 40)
    assert type(failure(fresh, topic)).__name__ == "RolledBack"
    set_main(stack, config, topic, snapshots[2])
    whole_again(stack, fresh, topic)


def test_rebuilt_registry_reports_nothing_present_as_missing(
    stack: Stack, archived: tuple[Path, str, list[int]]
) -> None:
    config, topic, _ = archived
    compact(stack, config, topic)
    assert status(config, topic, exit_code=0)["holes"] == []
    fresh = without_registry(stack, config, with_journal=False)
    Rebuild(load_config(fresh), [topic]).run()
    whole_again(stack, fresh, topic)


def test_copied_rows_are_no_range_of_a_rebuilt_registry(stack: Stack, archived: tuple[Path, str, list[int]]) -> None:
    config, topic, _ = archived
    delete_rows(stack, config, topic, 1, range(13, 16))
    assert refill(config, topic).rows(Fate.FROM_FILE) == 3
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert not status(fresh, topic, exit_code=0)["holes"]
    delete_rows(stack, fresh, topic, 1, [18])
    row = status(fresh, topic, exit_code=1)
    assert [(entry["partition"], entry["rows"]) for entry in row["holes"]] == [(1, 1)]


def test_what_was_committed_and_set_back_before_it_was_confirmed(
    stack: Stack, archived: tuple[Path, str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, topic, snapshots = archived
    produce(stack, topic)
    monkeypatch.setenv("ARCHIVER_FAULT", "after_commit:raise")
    assert not ArchiveJob(load_config(config), [topic], engine=InlineEngine()).run_once().succeeded
    monkeypatch.delenv("ARCHIVER_FAULT")
    set_main(stack, config, topic, snapshots[2])
    assert type(failure(config, topic)).__name__ == "RolledBack"
    assert status(config, topic, exit_code=1)["files"]["uploaded"]["ranges"] == PARTITIONS
    assert refill(config, topic).rows(Fate.FROM_FILE) == 20
    whole_again(stack, config, topic)
