"""`archiver compact` killed at every step."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psycopg
import pytest

from archiver.config import load_config
from archiver.fault_points import FaultPoint
from archiver.upkeep.repartition import repartition
from tests.fault.compact_process import compact, move
from tests.fault.soak.told import problems
from tests.support.archive.job_runs import archive_once, numbered
from tests.support.archive.partitioned import TERMS, check_files, produce, settings
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.foreign_writes import table_of
from tests.support.engine.forked import run_forked
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

PARTITIONS = 2
POINTS = (FaultPoint.BEFORE_UPLOAD, FaultPoint.AFTER_UPLOAD, FaultPoint.AFTER_STAGE, FaultPoint.AFTER_COMMIT)


def test_a_kill_at_any_step_changes_no_record(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    for start in range(0, 60, 20):
        stack.produce(topic, *numbered(range(start, start + 20), PARTITIONS))
        archive_once(config)
    kafka = from_kafka(stack, topic, PARTITIONS)
    for point in POINTS:
        killed = run_forked(compact, str(config), fault=f"{point}:kill")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert from_archive(config, topic, PARTITIONS) == kafka
    healed = run_forked(compact, str(config))
    assert (healed.returncode, healed.stdout) == (0, "0\n"), healed.stderr
    assert registered(config) == in_table(stack, config, topic)
    assert len(in_table(stack, config, topic)) == PARTITIONS
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        left = connection.execute("SELECT count(*) FROM metadata WHERE key = 'rewrite' AND NOT deleted").fetchone()
    assert left == (0,)


@pytest.mark.parametrize("point", POINTS)
def test_moved_files_are_in_the_table_once_after_a_kill(stack: Stack, tmp_path: Path, point: FaultPoint) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: settings(tmp_path, "day")})
    for turn in range(2):
        produce(stack, topic, turn, count=60)
        archive_once(config)
    old = table_of(stack, config, topic).spec().spec_id
    terms = json.dumps(TERMS[:2])
    config.write_text(config.read_text().replace('"partition_by" = "day"', f'"partition_by" = {terms}'))
    assert repartition(load_config(config), topic).was_changed
    kafka = from_kafka(stack, topic, PARTITIONS)
    killed = run_forked(move, str(config), fault=f"{point}:kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    table = table_of(stack, config, topic)
    is_done = point is FaultPoint.AFTER_COMMIT
    assert check_files(table).keys() == {table.spec().spec_id if is_done else old}
    assert from_archive(config, topic, PARTITIONS) == kafka
    healed = run_forked(move, str(config))
    assert healed.returncode == 0, healed.stderr
    table = table_of(stack, config, topic)
    assert check_files(table).keys() == {table.spec().spec_id}
    assert from_archive(config, topic, PARTITIONS) == kafka
    assert registered(config) == in_table(stack, config, topic)
    assert problems(config, topic) == []
    again = run_forked(move, str(config))
    assert (again.returncode, again.stdout) == (0, "0\n"), again.stderr


def registered(config: Path) -> set[str]:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        rows = connection.execute("SELECT path FROM files WHERE state = 'committed'").fetchall()
    return {path for (path,) in rows}


def in_table(stack: Stack, config: Path, topic: str) -> set[str]:
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    return set(table.inspect.data_files().column("file_path").to_pylist())
