"""`archiver reprocess` killed at every step."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

from archiver.config import load_config
from archiver.fault_points import FaultPoint
from tests.fault import reprocess_process
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.wrong_schema import PARTITIONS, RIGHT, archived_wrongly
from tests.support.engine.forked import run_forked
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

POINTS = (
    FaultPoint.AFTER_UPLOAD,
    FaultPoint.AFTER_STAGE,
    FaultPoint.AFTER_COMMIT,
)


def reprocess(config: Path, topic: str, fault: str | None = None) -> subprocess.CompletedProcess[str]:
    return run_forked(reprocess_process.reprocess, str(config), topic, fault=fault)


def test_a_kill_at_any_step_changes_no_record(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    proto.write_text(RIGHT)
    kafka = from_kafka(stack, topic, PARTITIONS)
    for point in POINTS:
        killed = reprocess(config, topic, f"{point}:kill")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert from_archive(config, topic, PARTITIONS) == kafka
    healed = reprocess(config, topic)
    assert (healed.returncode, healed.stdout) == (0, "0\n"), healed.stderr
    assert registered(config) == in_table(stack, config, topic)
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        left = connection.execute("SELECT count(*) FROM metadata WHERE key = 'rewrite' AND NOT deleted").fetchone()
    assert left == (0,)


def registered(config: Path) -> set[str]:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        rows = connection.execute("SELECT path FROM files WHERE state = 'committed'").fetchall()
    return {path for (path,) in rows}


def in_table(stack: Stack, config: Path, topic: str) -> set[str]:
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    return set(table.inspect.data_files().column("file_path").to_pylist())
