"""Audit entries of upkeep."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from archiver.audit.trails import find_trails
from archiver.config import load_config
from archiver.ingest.job import ArchiveJob
from archiver.records.where import Where
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.holds import HoldKeeper
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.repartition import repartition
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire
from catalog.iceberg.properties import REPARTITIONED
from catalog.iceberg.repartition import KEPT_CHANGES
from catalog.registry import Registry
from tests.support.archive.job_runs import archive_once, numbered, without_registry
from tests.support.archive.regrouping import Workshop
from tests.support.archive.retirements import archived, expire, objects_left
from tests.support.catalog.foreign_writes import table_of, tag
from tests.support.engine.forked import run_forked
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

KILLED = -9
DAY, HOUR = "day", "hour"


def entries(config: Path, *acts: str) -> list[dict[str, Any]]:
    settings = load_config(config)
    with Registry(settings.registry.dsn) as registry:
        (topic,) = registry.topics.every()
        head = registry.audit.head(topic)
    (trail,) = find_trails(settings, [topic.topic])
    assert trail.check(head=head).problems == []
    return [dict(entry) for entry in trail.entries() if entry["act"] in acts]


def partition_by(config: Path, term: str) -> None:
    config.write_text(re.sub(r'"partition_by" = .*', f'"partition_by" = {json.dumps(term)}', config.read_text()))


def repartition_only(path: str, topic: str) -> int:
    return 0 if repartition(load_config(Path(path)), topic).was_changed else 1


def expire_before(path: str, topic: str, offset: str) -> int:
    limits = RetireLimits(offset=int(offset))
    return 0 if Expire(load_config(Path(path)), (topic,), limits=limits, engine=InlineEngine()).run().succeeded else 1


def told(each: dict[str, Any]) -> tuple[str, str, bool]:
    return each["details"]["before"], each["details"]["after"], each.get("late", False)


def test_repartitioning_is_recorded_once_through_kills(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"partition_by": DAY}})
    stack.produce(topic, *numbered(range(5)))
    archive_once(config, topic)
    by_day = repartition(load_config(config), topic)
    assert (by_day.was_changed, entries(config, "repartition")) == (False, [])
    partition_by(config, HOUR)
    assert repartition(load_config(config), topic, dry_run=True).after.startswith("hour")
    assert run_forked(repartition_only, str(config), topic, fault="before_commit:kill").returncode == KILLED
    assert str(table_of(stack, config, topic).spec().fields[0].transform) == "day"
    assert run_forked(repartition_only, str(config), topic, fault="after_commit:kill").returncode == KILLED
    assert str(table_of(stack, config, topic).spec().fields[0].transform) == "hour"
    assert entries(config, "repartition") == [], "the table has it, and the trail not yet"

    archive_once(config, topic)
    day, hour = by_day.before, by_day.before.replace("day", "hour")
    assert [told(entry) for entry in entries(config, "repartition")] == [(day, hour, True)]
    partition_by(config, DAY)
    assert run_forked(repartition_only, str(config), topic, fault="after_commit:kill").returncode == KILLED
    assert not repartition(load_config(config), topic).was_changed, "which finds out what the killed one did"
    partition_by(config, HOUR)
    assert run_forked(repartition_only, str(config), topic, fault="audit_recorded:kill").returncode == KILLED
    archive_once(config, topic)
    assert [told(entry) for entry in entries(config, "repartition")] == [
        (day, hour, True),
        (hour, day, True),
        (day, hour, False),
    ]
    with Workshop.of(config) as shop:
        assert shop.registry.audit.intents(shop.topic) == (), "the one that was killed before its commit is forgotten"


def test_foreign_repartitioning_is_not_claimed(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"partition_by": DAY}})
    stack.produce(topic, *numbered(range(5)))
    archive_once(config, topic)
    with monkeypatch.context() as late:
        late.setattr("archiver.upkeep.repartition.is_partitioned", lambda *_: False)
        assert not repartition(load_config(config), topic).was_changed
    assert entries(config, "repartition") == []
    partition_by(config, HOUR)
    assert run_forked(repartition_only, str(config), topic, fault="after_commit:kill").returncode == KILLED
    table = table_of(stack, config, topic)
    with table.transaction() as change:
        change.set_properties({REPARTITIONED: " ".join(["later"] * KEPT_CHANGES)})
    archive_once(config, topic)
    (entry,) = entries(config, "repartition")
    assert (entry["details"]["outcome"], entry["late"]) == ("unknown", True)


def names_hash(paths: Sequence[str]) -> str:
    return sha256("\n".join(sorted(path.rpartition("/")[2] for path in paths)).encode()).hexdigest()


def test_purged_files_are_recorded_before_and_after_a_kill(stack: Stack) -> None:
    config, topic = archived(stack)
    with Workshop.of(config) as shop:
        paths, sizes = zip(*((file.path, file.size_bytes) for file in shop.files()), strict=True)
    tag(stack, config, topic, "kept")
    assert expire(config, topic, limits=RetireLimits(offset=10)).purged.deleted == 0
    assert entries(config, "purge") == [], "nothing was to go: a tag has the file"
    table = table_of(stack, config, topic)
    table.manage_snapshots().remove_tag("kept").commit()
    killed = run_forked(expire_before, str(config), topic, "10", fault="files_deleted:kill")
    assert (killed.returncode, objects_left(config, paths)) == (KILLED, list(paths[1:]))
    (begun,) = entries(config, "purge")
    assert (begun["details"]["step"], begun["details"]["files"]) == ("begun", 1)
    assert (begun["details"]["bytes"], begun["details"]["names_sha256"]) == (sizes[0], names_hash(paths[:1]))

    assert expire(config, topic, limits=RetireLimits(offset=10)).purged.left == ()
    assert entries(config, "purge") == [begun], "it was gone before, so nobody claims to have deleted it now"
    done = expire(config, topic, limits=RetireLimits(offset=20))
    assert (done.purged.deleted, objects_left(config, paths)) == (1, [paths[2]])
    _, before, after = entries(config, "purge")
    assert before["details"]["removal"] == after["details"]["removal"] != begun["details"]["removal"]
    assert [entry["details"]["step"] for entry in (before, after)] == ["begun", "ended"]
    for entry in (before, after):
        assert entry["details"]["files"] == 1
        assert entry["details"]["bytes"] == sizes[1]
        assert entry["details"]["names_sha256"] == names_hash(paths[1:2])
        assert entry["digest"]["before"] == entry["digest"]["after"]


def test_files_that_an_erasure_deletes_are_noted(stack: Stack) -> None:
    config, topic = archived(stack)
    where = Where.parse("partition = 0 and offset = 25")
    report = Erase(load_config(config), topic, where, options=EraseOptions(), engine=InlineEngine()).run()
    assert report.finished == (report.erasure,)
    noted = entries(config, "purge", "erase")
    assert [entry["details"].get("step") for entry in noted] == [None, "begun", "ended", None]
    assert noted[2]["details"]["files"] == report.purged.deleted == 1


def hold(config: Path, topic: str, *, is_held: bool) -> None:
    text = config.read_text().replace('"hold" = true\n', "")
    assert '"snapshot_retention"' in text
    config.write_text(text.replace('"snapshot_retention"', '"hold" = true\n"snapshot_retention"') if is_held else text)
    assert load_config(config).topic(topic).hold == is_held


def test_hold_in_the_configuration_is_recorded_and_released(stack: Stack) -> None:
    config, topic = archived(stack)
    assert entries(config, "hold", "release") == []
    hold(config, topic, is_held=True)
    assert expire(config, topic, limits=RetireLimits(offset=10), dry_run=True).held == {0: "config"}
    assert entries(config, "hold", "release") == [], "a dry run changes nothing"
    killed = run_forked(expire_before, str(config), topic, "10", fault="audit_recorded:kill")
    assert killed.returncode == KILLED
    assert expire(config, topic, limits=RetireLimits(offset=10)).first_offsets == {}
    (placement,) = entries(config, "hold", "release")
    assert (placement["act"], placement["details"]["hold"], placement["details"]["spans"]) == (
        "hold",
        "config",
        [[None, 0, None]],
    )

    hold(config, topic, is_held=False)
    archive_once(config, topic)
    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert Orphans(load_config(fresh), (topic,), deletes=True).run().succeeded
    assert [entry["act"] for entry in entries(fresh, "hold", "release")] == ["hold", "release"]
    hold(fresh, topic, is_held=True)
    placed = HoldKeeper(load_config(fresh)).place(topic, reason="case 7")
    noted = entries(fresh, "hold", "release")
    assert [record["details"]["hold"] for record in noted] == ["config", "config", "config", placed.hold.id]
    assert [record["details"].get("change") for record in noted] == [1, 2, 3, None]


def test_long_job_does_not_record_its_old_holds_again(stack: Stack) -> None:
    config, topic = archived(stack)
    job = ArchiveJob(load_config(config), (topic,), engine=InlineEngine())
    assert job.run_once().succeeded
    hold(config, topic, is_held=True)
    assert expire(config, topic).succeeded
    assert job.run_once().succeeded
    assert [entry["act"] for entry in entries(config, "hold", "release")] == ["hold"]
