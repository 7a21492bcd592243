"""Erasures by columns; undecoded records are named."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import message_factory

from archiver.config import load_config
from archiver.errors import ConfigError
from archiver.records.where import Where
from archiver.terminal.erase_screen import EraseScreen
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.erase.report import EraseFinished, EraseReport
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.refill.report import Fate
from archiver.upkeep.reprocess.job import Reprocess
from archiver.upkeep.reprocess.row_filter import Reach, RowFilter
from archiver.upkeep.verify.job import Verify
from tests.support.archive.forgotten import NAME, acts, objects_with_her, registry_with_her
from tests.support.archive.job_runs import archive_once, run, without_registry
from tests.support.archive.partitioned import check_files
from tests.support.archive.readers import Seen, from_archive, from_kafka
from tests.support.catalog.foreign_writes import table_of, tag
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack, to_toml

pytestmark = pytest.mark.integration

START = 1_767_225_600_000
HER_ID = NAME.decode()
FULL = """
syntax = "proto3"; package t;
message Customer { string id = 1; int32 tier = 2; }
message Order { int64 number = 1; Customer customer = 2; bytes token = 3; }
"""
BARE = 'syntax = "proto3"; package t; message Order { int64 number = 1; }'
HERS = f"val.customer.id = '{HER_ID}'"


def value(number: int) -> bytes | None:
    if number % 10 == 4:
        return None
    if number % 10 == 7:
        return b"\xff\xff%d" % number
    kind = message_factory.GetMessageClass(descriptor_of(FULL, "t.Order"))
    made = kind(number=number, token=b"\x00%d" % number)
    if number % 10 != 6:
        made.customer.id = HER_ID if is_hers(number) else f"c{number}"
        made.customer.tier = number % 3
    encoded: bytes = made.SerializeToString(deterministic=True)
    return encoded


def is_hers(number: int) -> bool:
    return number % 5 == 3


def produce(stack: Stack, topic: str, numbers: range) -> None:
    stack.produce(topic, *({"key": b"k%d" % n, "value": value(n), "timestamp": START + n} for n in numbers))


def value_section(folder: Path) -> dict[str, str]:
    return {"format": "protobuf", "message": "t.Order", "proto": str(folder / "order.proto")}


def archived(stack: Stack, folder: Path, proto: str | None = FULL, **more: Any) -> tuple[Path, str]:
    topic = stack.topic()
    (folder / "order.proto").write_text(proto or FULL)
    config = stack.config({topic: {"value": value_section(folder), **more} if proto else {}})
    for start in (0, 10):
        produce(stack, topic, range(start, start + 10))
        archive_once(config, topic, engine=InlineEngine())
    return config, topic


def erase(config: Path, topic: str, where: str | None = HERS, **options: Any) -> EraseReport:
    return Erase(
        load_config(config),
        topic,
        None if where is None else Where.parse(where),
        options=EraseOptions(clock=lambda: time.time() + 9 * 86_400, **options),
        engine=InlineEngine(),
    ).run()


def check(stack: Stack, config: Path, topic: str, gone: Callable[[Seen], bool]) -> None:
    left = [record for record in from_kafka(stack, topic, 1) if not gone(record)]
    assert from_archive(config, topic, 1) == left
    assert RefillJob(load_config(config), topic, engine=InlineEngine()).run().mended == ()
    report = Verify(load_config(config), [topic], engine=InlineEngine()).run()
    assert (report.failed, report.topics[0].faults, report.topics[0].rows) == ((), (), len(left))


def test_erasure_by_nested_column_names_undecoded_records(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, topic = archived(stack, tmp_path)
    with monkeypatch.context() as dead:  # a range that waits for its commit
        produce(stack, topic, range(20, 30))
        dead.setenv("ARCHIVER_FAULT", "before_commit:raise")
        assert not run(config).succeeded
    assert objects_with_her(config)
    dry = erase(config, topic, dry_run=True)
    assert (dry.rows, dry.offsets, dry.succeeded) == (4, {0: 4}, False), "what waits is not in the table yet"
    assert dry.unjudged == ((0, 7, 8), (0, 17, 18))
    done = erase(config, topic)
    assert (done.rows, done.offsets, done.failures, done.unfinished) == (6, {0: 6}, {}, ())
    assert done.unjudged == ((0, 7, 8), (0, 17, 18), (0, 27, 28))
    assert (done.succeeded, done.finished, done.doubtful) == (False, (done.erasure,), (done.erasure,))
    assert objects_with_her(config) == []
    assert not registry_with_her(config)
    (noted,) = acts(config, topic, "erase")
    assert (noted["id"], noted["unjudged_records"]) == (done.erasure, 3)
    (_, line), _ = EraseScreen.lines(EraseFinished(report=done))
    assert line["unjudged"] == {"0": {"records": 3, "offsets": [[7, 8], [17, 18], [27, 28]]}}
    assert HER_ID not in str(line)
    check(stack, config, topic, lambda record: is_hers(record.offset))
    again = erase(config, topic)
    assert (again.rows, again.erasure, again.unjudged, again.succeeded) == (0, None, done.unjudged, False)
    rest = erase(config, topic, f"{HERS} or offset in (7, 17, 27)")
    assert (rest.rows, rest.unjudged, rest.succeeded) == (3, (), True)
    assert "unjudged_records" not in acts(config, topic, "erase")[-1]
    check(stack, config, topic, lambda record: is_hers(record.offset) or record.offset % 10 == 7)


def test_erasure_kept_open_stays_doubtful_until_its_end(stack: Stack, tmp_path: Path) -> None:
    config, topic = archived(stack, tmp_path)
    tag(stack, config, topic, "kept")
    done = erase(config, topic)
    assert (done.rows, done.doubtful, len(done.unfinished)) == (4, (), 1)
    with stack.catalog().load_table(load_config(config).topic(topic).table).manage_snapshots() as manage:
        manage.remove_tag("kept")
    finished = erase(config, topic, None)
    assert (finished.unjudged, finished.finished, finished.doubtful) == ((), done.unfinished, done.unfinished)
    assert not finished.succeeded
    assert objects_with_her(config) == []
    assert erase(config, topic, None).succeeded


@pytest.mark.parametrize("proto", [BARE, None])
def test_fields_archived_without_a_column_are_found_later(stack: Stack, tmp_path: Path, proto: str | None) -> None:
    config, topic = archived(stack, tmp_path, proto)
    with pytest.raises(ConfigError, match=r"has no columns|no such column"):
        erase(config, topic)
    (tmp_path / "order.proto").write_text(FULL)
    if proto is None:
        document = tomllib.loads(config.read_text())
        document["topics"][topic]["value"] = value_section(tmp_path)
        config.write_text(to_toml(document))
    produce(stack, topic, range(20, 30))
    archive_once(config, topic, engine=InlineEngine())
    first = erase(config, topic)
    assert (first.rows, first.succeeded) == (2, False)
    hidden = {n for n in range(20) if value(n) is not None} | {27}
    assert {n for _, start, end in first.unjudged for n in range(start, end)} == hidden
    assert objects_with_her(config), "as it says: what it couldn't judge is still there"
    report = Reprocess(load_config(config), topic, RowFilter(reach=Reach.ALL), engine=InlineEngine()).run()
    assert report.succeeded
    second = erase(config, topic)
    assert (second.rows, second.unjudged) == (4, ((0, 7, 8), (0, 17, 18), (0, 27, 28)))
    assert objects_with_her(config) == []
    check(stack, config, topic, lambda record: is_hers(record.offset))


def test_rewritten_files_are_judged_by_their_rows_versions(stack: Stack, tmp_path: Path) -> None:
    config, topic = archived(stack, tmp_path, BARE)
    (tmp_path / "order.proto").write_text(FULL)
    produce(stack, topic, range(20, 30))
    archive_once(config, topic, engine=InlineEngine())
    table = table_of(stack, config, topic)
    table.overwrite(table.scan().to_arrow())
    assert len([*table_of(stack, config, topic).scan().plan_files()]) == 1
    done = erase(config, topic, f"{HERS} and offset >= 20")
    assert (done.rows, done.offsets, done.unjudged) == (2, {0: 2}, ((0, 27, 28),))
    check(stack, config, topic, lambda record: record.offset in (23, 28))


def test_erased_partition_values_leave_journal_and_manifests(stack: Stack, tmp_path: Path) -> None:
    terms = {"partition_by": ["val.customer.id", "truncate(4, key.__raw__)"]}
    config, topic = archived(stack, tmp_path, **terms)
    done = erase(config, topic, f"{HERS} or offset in (7, 17)")
    assert (done.rows, done.succeeded, done.partition_columns) == (6, True, ("key.__raw__", "val.customer.id"))
    assert objects_with_her(config) == []
    assert not registry_with_her(config)
    assert partitions_with_her(stack, config, topic) == ["deleted"] * 4, "as it says"
    produce(stack, topic, range(20, 23))
    archive_once(config, topic, engine=InlineEngine())
    assert partitions_with_her(stack, config, topic) == [], "of the current snapshot"
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    table = table_of(stack, fresh, topic)
    lost = next(task.file for task in table.scan().plan_files() if "c12" in repr(task.file.partition))
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as change:
        change.delete_data_file(lost)
    report = RefillJob(load_config(fresh), topic, engine=InlineEngine()).run()
    assert report.rows(Fate.FROM_FILE) == 1
    check_files(table_of(stack, fresh, topic))
    check(
        stack, fresh, topic, lambda record: record.offset < 20 and (is_hers(record.offset) or record.offset % 10 == 7)
    )


def partitions_with_her(stack: Stack, config: Path, topic: str) -> list[str]:
    table = table_of(stack, config, topic)
    return [
        entry.status.name.lower()
        for manifest in table.current_snapshot().manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        if HER_ID in repr(entry.data_file.partition)
    ]
