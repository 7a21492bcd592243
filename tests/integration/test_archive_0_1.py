"""An archive of version 0.1 in today's commands.

The fixtures act in turn on one restored copy.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.storage.objects import ObjectStore
from archiver.upkeep.erase.job import Erase, EraseOptions
from catalog.errors import RegistryOutdated
from catalog.registry import Registry
from catalog.registry.postgres import Postgres, migrations_by_number
from tests.support.archive.job_runs import run
from tests.support.archive.kept_archive import Fate
from tests.support.archive.readers import Seen, seen_from
from tests.support.archive.restored_archive import RestoredArchive, restored
from tests.support.archive.two_topics import Ran
from tests.support.archive.upgraded_archive import KEPT, TOPICS, UpgradedArchive
from tests.support.catalog.foreign_writes import table_of
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.serve_command import serving

pytestmark = pytest.mark.integration

RIGHT = dict.fromkeys(TOPICS, True)
DAY = 86_400.0
LATEST = 20
"""The last migration that 0.1 has."""
DELETED = [(0, 101, 103, 2), (1, 121, 126, 2)]
"""Where other engines have deleted rows of `payments`: partition, first and last offset, rows."""
FIRST_EVENT = 33
FIRST_CUSTOMERS = {0: 50, 1: 25}
"""Whole files go before offset 70, but the hold on partition 1 begins at 40."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestoredArchive]:
    with restored(KEPT, tmp_path_factory.mktemp("archive-0.1")) as archive:
        yield archive


@pytest.fixture(scope="module")
def upgraded(archive: RestoredArchive) -> UpgradedArchive:
    dsn = archive.database()
    Registry(dsn).close()
    return UpgradedArchive(archive=archive, config=archive.config(dsn), present={Fate.ARCHIVED})


@pytest.fixture(scope="module")
def rebuilt_at_once(upgraded: UpgradedArchive) -> dict[str, Any]:
    empty = upgraded.archive.config(upgraded.archive.stack.database())
    done = upgraded.run("registry", "rebuild", config=empty)
    ranges, replay = (_ranges(upgraded.config), _ranges(empty)), upgraded.check(config=empty)
    upgraded.archive.reset_objects()
    return {"rebuild": done, "ranges": ranges, "replay": replay}


@pytest.fixture(scope="module")
def first_look(upgraded: UpgradedArchive, rebuilt_at_once: dict[str, Any]) -> dict[str, Any]:
    assert rebuilt_at_once
    return {
        "replay": upgraded.check(),
        "status": _by_topic(upgraded.run("status")),
        "verify": upgraded.run("verify"),
        "audit": upgraded.run("audit", "check", "--registry", "--public-key", str(KEPT.public_key)),
        "history": upgraded.run("schema", "history", "orders"),
        "holds": upgraded.run("hold", "--list", "--all", "customers"),
        "served": _served(upgraded),
    }


@pytest.fixture(scope="module")
def archived(upgraded: UpgradedArchive, first_look: dict[str, Any]) -> dict[str, Any]:
    assert first_look
    report = run(upgraded.config)
    upgraded.present |= {Fate.STAGED, Fate.WAITING}
    status = _by_topic(upgraded.run("status"))
    return {"report": report, "replay": upgraded.check(), "status": status}


@pytest.fixture(scope="module")
def refilled(upgraded: UpgradedArchive, archived: dict[str, Any]) -> dict[str, Any]:
    assert archived
    done = upgraded.run("refill", "payments")
    upgraded.present.add(Fate.DELETED)
    return {"refill": done, "replay": upgraded.check("payments"), "verify": upgraded.run("verify", "--against-kafka")}


@pytest.fixture(scope="module")
def expired(upgraded: UpgradedArchive, refilled: dict[str, Any]) -> dict[str, Any]:
    assert refilled
    events = upgraded.run("expire", "events", "--before", str(FIRST_EVENT), "--rows")
    customers = upgraded.run("expire", "customers", "--before", "70")
    upgraded.gone.append(lambda topic, record: topic == "events" and record.offset < FIRST_EVENT)
    upgraded.gone.append(
        lambda topic, record: topic == "customers" and record.offset < FIRST_CUSTOMERS[record.partition]
    )
    return {"events": events, "customers": customers, "replay": upgraded.check("events", "customers")}


@pytest.fixture(scope="module")
def compacted(upgraded: UpgradedArchive, expired: dict[str, Any]) -> dict[str, Any]:
    assert expired
    done = upgraded.run("compact", "--min-files", "2", "--repartition")
    return {"compact": done, "replay": upgraded.check()}


@pytest.fixture(scope="module")
def erased(upgraded: UpgradedArchive, compacted: dict[str, Any]) -> dict[str, Any]:
    assert compacted
    refused = upgraded.run("erase", "customers", "--where", "key = 'carl'", "--yes")
    tagged = upgraded.run("erase", "customers", "--finish")
    with table_of(upgraded.archive.stack, upgraded.config, "customers").manage_snapshots() as manage:
        manage.remove_tag("audited")
    blocked = upgraded.run("erase", "customers", "--where", "key = 'dora' and offset < 40", "--yes")
    (topic,) = json.loads(upgraded.run("hold", "--list", "customers").text)["topics"]
    for hold in topic["holds"]:
        assert upgraded.run("hold", "customers", "--release", hold["id"], "--reason", "closed").code == 0
    finished = Erase(
        load_config(upgraded.config),
        "customers",
        None,
        engine=InlineEngine(),
        options=EraseOptions(clock=lambda: time.time() + 9 * DAY),
    ).run()
    done = [
        upgraded.run("erase", "shipments", "--where", "key = 'k3'", "--yes"),
        upgraded.run("erase", "orders", "--where", "offset = 20", "--yes"),
        upgraded.run("erase", "payments", "--where", "partition = 0 and offset = 101", "--yes"),
    ]
    upgraded.gone += [
        lambda topic, record: topic == "customers" and record.key == b"dora" and record.offset < 40,
        lambda topic, record: topic == "shipments" and record.key == b"k3",
        lambda topic, record: topic == "orders" and record.offset == 20,
        lambda topic, record: topic == "payments" and (record.partition, record.offset) == (0, 101),
    ]
    said = {"refused": refused, "tagged": tagged, "held": blocked, "finished": finished, "done": done}
    return {**said, "replay": upgraded.check("customers", "shipments", "orders", "payments")}


@pytest.fixture(scope="module")
def rebuilt(upgraded: UpgradedArchive, erased: dict[str, Any]) -> dict[str, Any]:
    assert erased
    before = _ranges(upgraded.config)
    upgraded.config = upgraded.archive.config(upgraded.archive.stack.database())
    done = upgraded.run("registry", "rebuild")
    return {
        "rebuild": done,
        "ranges": (before, _ranges(upgraded.config)),
        "replay": upgraded.check(),
        "verify": upgraded.run("verify"),
        "refill": [upgraded.run("refill", topic, "--dry-run") for topic in TOPICS],
    }


def test_replay_gives_every_record(first_look: dict[str, Any]) -> None:
    assert first_look["replay"] == RIGHT


def test_status_counts_what_was_left(first_look: dict[str, Any]) -> None:
    status = first_look["status"]
    names = ("lag_records", "erased_records", "lost_offsets", "retired_records", "holds")
    assert {topic: tuple(status[topic][name] for name in names) for topic in TOPICS} == {
        "customers": (0, 46, 0, 0, 1),
        "events": (20, 0, 5, 20, 0),
        "orders": (35, 0, 0, 0, 0),
        "payments": (0, 3, 0, 0, 0),
        "shipments": (0, 0, 0, 0, 0),
    }
    assert status["orders"]["files"]["uploaded"]["rows"] == 20
    assert status["customers"]["files"]["uploaded"]["rows"] == 10
    assert [tuple(hole.values()) for hole in status["payments"]["holes"]] == DELETED


def test_verify_misses_only_what_other_engines_deleted(first_look: dict[str, Any]) -> None:
    verified = {line["topic"]: line for line in first_look["verify"].lines if line["event"] == "verified"}
    archived = [record.topic for record in KEPT.records() if record.fate == Fate.ARCHIVED]
    proven = {topic: archived.count(topic) for topic in TOPICS}
    proven["payments"] -= 36  # those of the two ranges that lack some
    assert {topic: line["records"] for topic, line in verified.items()} == proven
    faults = [line for line in first_look["verify"].lines if line["event"] == "fault"]
    assert [(line["topic"], line["kind"]) for line in faults] == [("payments", "deleted by others")] * 2


def test_the_audit_trail_is_whole_and_signed(first_look: dict[str, Any]) -> None:
    trails = json.loads(first_look["audit"].text)["trails"]
    assert first_look["audit"].code == 0
    assert {trail["topic"]: (trail["is_whole"], trail["checkpoints"]) for trail in trails} == dict.fromkeys(
        TOPICS, (True, 2)
    )


def test_schema_versions_and_holds_are_known(first_look: dict[str, Any]) -> None:
    history = json.loads(first_look["history"].text)
    assert [version["version"] for version in history["versions"]] == [1, 2, 3]
    (topic,) = json.loads(first_look["holds"].text)["topics"]
    assert [(hold["reason"], hold["released_why"]) for hold in topic["holds"]] == [
        ("case 1", "closed"),
        ("case 2", None),
    ]


def test_a_user_reads_on_where_the_group_was(upgraded: UpgradedArchive, first_look: dict[str, Any]) -> None:
    committed, records = first_look["served"]
    assert {str(partition): offset for partition, offset in committed.items()} == KEPT.about["group"]["offsets"]
    archived = [record.seen for record in KEPT.records() if (record.topic, record.fate) == ("orders", Fate.ARCHIVED)]
    assert records == archived


def test_rebuild_from_the_untouched_archive(rebuilt_at_once: dict[str, Any]) -> None:
    assert rebuilt_at_once["rebuild"].code == 0
    restored_topics = {topic["topic"]: topic for topic in json.loads(rebuilt_at_once["rebuild"].text)["topics"]}
    assert {name: topic["from_journal"] for name, topic in restored_topics.items()} == RIGHT
    assert restored_topics["orders"]["staged"] == 2
    before, after = (set(ranges) for ranges in rebuilt_at_once["ranges"])
    assert {range_[:4] for range_ in after - before} == {("customers", 0, 75, 80), ("customers", 1, 75, 80)}
    assert before <= after
    assert rebuilt_at_once["replay"] == RIGHT


def test_archive_settles_what_was_left_and_reads_on(archived: dict[str, Any]) -> None:
    errors = {topic.topic: type(topic.error).__name__ for topic in archived["report"].topics if topic.error}
    assert errors == {"payments": "RowsRemoved"}
    assert archived["replay"] == RIGHT
    assert {topic: archived["status"][topic]["lag_records"] for topic in TOPICS} == dict.fromkeys(TOPICS, 0)
    assert all(archived["status"][topic]["files"]["uploaded"]["ranges"] == 0 for topic in TOPICS)


def test_refill_brings_deleted_rows_back(refilled: dict[str, Any]) -> None:
    (line,) = refilled["refill"].lines
    assert [tuple(hole.values()) for hole in line["holes"]] == [(*hole, "from_file", "") for hole in DELETED]
    assert refilled["replay"] == {"payments": True}
    assert refilled["verify"].code == 0, refilled["verify"].text


def test_expire_retires_rows_and_leaves_held_ones(expired: dict[str, Any]) -> None:
    assert expired["events"].of("events")["first_offsets"] == {"0": FIRST_EVENT, "1": FIRST_EVENT}
    assert expired["events"].code == 0
    report = expired["customers"].of("customers")
    assert report["first_offsets"] == {str(partition): offset for partition, offset in FIRST_CUSTOMERS.items()}
    assert (expired["customers"].code, list(report["held_partitions"])) == (1, ["1"])
    assert expired["replay"] == {"events": True, "customers": True}


def test_compact_keeps_every_record(compacted: dict[str, Any]) -> None:
    topics = {line["topic"]: line for line in compacted["compact"].lines if line["event"] == "compacted"}
    assert {topic: len(line["commits"]) for topic, line in topics.items()} == dict.fromkeys(TOPICS, 1)
    assert topics["payments"]["removed_records"] == 6
    assert topics["shipments"]["moved_files"] > 0
    assert compacted["compact"].code == 0
    assert compacted["replay"] == RIGHT


def test_erase_names_hold_and_tag(erased: dict[str, Any]) -> None:
    assert erased["refused"].code == 1
    assert "legal hold" in erased["refused"].text
    tagged, _ = erased["tagged"].lines
    assert list(tagged["store"]["needed_by_tags_and_branches"]) == ["audited"]
    assert (erased["tagged"].code, len(tagged["unfinished"])) == (1, 1)
    report, _ = erased["held"].lines
    assert (erased["held"].code, report["store"]["held_files"] > 0, len(report["unfinished"])) == (1, True, 2)


def test_erased_records_are_in_no_object(upgraded: UpgradedArchive, erased: dict[str, Any]) -> None:
    assert (erased["finished"].succeeded, len(erased["finished"].finished)) == (True, 2), erased["finished"]
    assert [done.code for done in erased["done"]] == [0, 0, 0], [done.text for done in erased["done"]]
    assert erased["replay"] == {"customers": True, "shipments": True, "orders": True, "payments": True}
    names = {key for offset, key in _stored(upgraded, "customers") if offset < 40}
    assert names == {b"carl", b"emil"}


def test_rebuild_after_all_acts(rebuilt: dict[str, Any]) -> None:
    assert rebuilt["rebuild"].code == 0
    before, after = rebuilt["ranges"]
    assert after == before
    assert rebuilt["replay"] == RIGHT
    assert rebuilt["verify"].code == 0, rebuilt["verify"].text
    assert [done.lines[0]["holes"] for done in rebuilt["refill"]] == [[]] * len(TOPICS)


def test_archiving_goes_on_with_the_rebuilt_registry(upgraded: UpgradedArchive, rebuilt: dict[str, Any]) -> None:
    assert rebuilt
    upgraded.archive.stack.produce("customers", *({"key": b"finn", "value": b"%d" % number} for number in range(9)))
    assert run(upgraded.config).succeeded
    done = upgraded.run("status", "customers")
    assert (done.code, _by_topic(done)["customers"]["lag_records"]) == (0, 0)


def test_an_archiver_that_lacks_a_migration_refuses(archive: RestoredArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of 0.1 after a later version, by today's check of migrations."""
    dsn = archive.database()
    Registry(dsn).close()
    migrations = migrations_by_number()
    later = max(migrations) + 1
    with psycopg.connect(dsn) as connection:
        connection.execute("INSERT INTO migrations (number, name) VALUES (%s, %s)", (later, f"{later:04}_later"))
    monkeypatch.setattr(
        "catalog.registry.postgres.migrations_by_number",
        lambda: {number: migration for number, migration in migrations.items() if number <= LATEST},
    )
    with pytest.raises(RegistryOutdated, match=f"migrated by a newer archiver .up to {later:04}.: upgrade this one"):
        Postgres.migrated(dsn)
    config = archive.config(dsn)
    for words in (["status"], ["archive"], ["compact"], ["expire"], ["refill", "orders"]):
        done = CliRunner().invoke(app, [*words, "--json", "--config", str(config)])
        assert (done.exit_code, "upgrade this one" in done.stderr) == (1, True), (words, done.output)


def test_the_registry_of_0_1_has_its_migrations(archive: RestoredArchive) -> None:
    with psycopg.connect(archive.database()) as connection:
        numbers = connection.execute("SELECT number FROM migrations ORDER BY number").fetchall()
    assert [number for (number,) in numbers] == list(range(1, LATEST + 1))


def _ranges(config: Path) -> list[tuple[Any, ...]]:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        return connection.execute(
            "SELECT topic, partition, start_offset, end_offset, path, files.rows, digest FROM files"
            " JOIN topics ON topics.id = files.topic_id WHERE state = 'committed' ORDER BY 1, 2, 3, 5"
        ).fetchall()


def _served(course: UpgradedArchive) -> tuple[dict[int, int], list[Seen]]:
    about = KEPT.about
    secured = course.archive.config(load_config(course.config).registry.dsn, sasl={"mechanisms": ["SCRAM-SHA-256"]})
    with serving(secured) as address:
        options = {
            "bootstrap.servers": address,
            "group.id": about["group"]["name"],
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": about["user"]["name"],
            "sasl.password": about["user"]["password"],
            "enable.partition.eof": True,
        }
        with closing(Consumer(options)) as consumer:
            committed = consumer.committed([TopicPartition("orders", number) for number in range(2)], 30)
            records = [record for number in range(2) for record in seen_from(consumer, "orders", number)]
    return {position.partition: position.offset for position in committed}, records


def _by_topic(done: Ran) -> dict[str, Any]:
    return {topic["topic"]: topic for topic in json.loads(done.text)["topics"]}


def _stored(course: UpgradedArchive, topic: str) -> list[tuple[int, bytes]]:
    objects = ObjectStore.of(load_config(course.config).catalog)
    parts = objects.walk(table_of(course.archive.stack, course.config, topic).location())
    paths = [listed.path for part in parts for listed in part if listed.path.endswith(".parquet")]
    rows = [row for path in paths for row in pq.read_table(io.BytesIO(objects.read(path))).to_pylist()]
    assert rows
    return [(row["kafka"]["offset"], row["key"]["__raw__"]) for row in rows]
