"""Which modules commands load before they start: a help text must not wait for database drivers."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.light_start import quick_imports

HEAVY = (
    "confluent_kafka", "google.protobuf", "kafka", "numpy", "opentelemetry", "pandas", "prometheus_client", "psutil",
    "psycopg", "psycopg_pool", "pyarrow", "pyiceberg", "pyspark", "requests",
)  # fmt: skip
REPLAY_NEEDS = ("confluent_kafka", "google.protobuf", "numpy", "pandas", "pyarrow", "pyiceberg", "requests")


def loaded(program: str) -> set[str]:
    tell = "print(*(name for name in HEAVY if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; HEAVY = {HEAVY!r}\n{program}\n{tell}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments", [["--help"], *([name, "--help"] for name in ("archive", "replay", "orphans", "local", "registry"))]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    run = f"""
from archiver.cli.app import app
try:
    app({arguments!r}, standalone_mode=False)
except SystemExit:
    pass"""
    assert loaded(run) == set()


def test_a_replay_loads_neither_the_registry_nor_the_job() -> None:
    """Footers say what a replay needs; Postgres is asked for what they don't know."""
    assert loaded("import archiver.config, archiver.replay") <= set(REPLAY_NEEDS)


def test_what_is_loaded_is_seen() -> None:
    assert {"pyarrow", "psycopg"} <= loaded("import pyarrow, psycopg")


@pytest.mark.parametrize("command", ["archiver.ingest.topic.status", "archiver.replay.export"])
def test_short_commands_do_without_pandas(command: str) -> None:
    run = f"import archiver.light_start as arrow; arrow.spare_pandas(); import {command}, pyarrow; pyarrow.array([1])"
    assert "pandas" not in loaded(run)
    assert "pandas" in loaded(f"import {command}")  # or nothing is spared


@pytest.mark.parametrize("arguments", [["status"], ["replay", "orders"]])
def test_the_commands_themselves_do_without_pandas(tmp_path: Path, arguments: list[str]) -> None:
    """Up to the first thing that they ask of a server, which isn't there."""
    config = tmp_path / "archiver.toml"
    config.write_text(
        """
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
[catalog]
uri = "http://127.0.0.1:1"
[registry]
dsn = "postgresql://127.0.0.1:1/none?connect_timeout=1"
[topics.orders]
"""
    )
    run = f"""
from archiver.cli.app import app
try:
    app({[*arguments, "--config", str(config)]!r}, standalone_mode=False)
except BaseException as error:
    print(repr(error))"""
    found = loaded(run)
    assert {"pyarrow", "pyiceberg"} <= found
    assert "pandas" not in found


def test_pandas_is_there_for_who_asks() -> None:
    run = """
import archiver.light_start as arrow; arrow.spare_pandas()
import pyarrow
assert pyarrow.array([1, 2]).to_pandas().tolist() == [1, 2]"""
    assert "pandas" in loaded(run)


def test_imports_are_not_collected_in_between_and_count_as_old_then() -> None:
    with quick_imports():
        assert not gc.isenabled()
        with quick_imports():
            many = [[] for _ in range(20_000)]
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_count()[0] < len(many)
    assert gc.get_freeze_count() == 0


def test_collections_go_on_after_an_import_that_fails() -> None:
    with pytest.raises(ImportError), quick_imports():
        importlib.import_module("archiver.no_such_module")
    assert gc.isenabled()
