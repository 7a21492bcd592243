"""Modules that commands load before they start."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from archiver.light_start import quick_imports

HEAVY = (
    "archiver.audit", "archiver.files", "archiver.ingest.task", "archiver.records.where", "archiver.schemas",
    "archiver.storage.journal", "confluent_kafka", "cryptography", "google.protobuf", "kafka", "numpy", "opentelemetry",
    "pandas", "prometheus_client", "psutil", "psycopg", "psycopg_pool", "pyarrow", "pyiceberg", "pyspark", "requests",
    "schema_mapping.protobuf.format",
)  # fmt: skip
REPLAY_NEEDS = ("numpy", "pyarrow", "pyiceberg", "requests")
STATUS_NEEDS = ("kafka", "psycopg", "psycopg_pool", "pyiceberg", "requests")
GROUPS_NEEDS = ("confluent_kafka", "kafka")


def loaded(program: str) -> set[str]:
    tell = "print(*(name for name in HEAVY if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; HEAVY = {HEAVY!r}\n{program}\n{tell}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    return set(done.stdout.splitlines()[-1].split())


def as_process(arguments: Sequence[str]) -> str:
    return f"""
sys.argv[1:] = {list(arguments)!r}
from archiver.cli import main
try:
    main()
except SystemExit:
    pass"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "archiver.toml"
    path.write_text(
        """
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
"socket.connection.setup.timeout.ms" = 1000
[catalog]
uri = "http://127.0.0.1:1"
[registry]
dsn = "postgresql://127.0.0.1:1/none?connect_timeout=1"
[serve]
listen = "127.0.0.1:1"
[topics.orders]
"""
    )
    return path


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


def test_archive_readers_load_neither_registry_nor_job() -> None:
    run = "import archiver.config; from archiver.replay import ReplayConsumer"
    assert loaded(run) <= {*REPLAY_NEEDS, "confluent_kafka", "pandas"}


def test_what_is_loaded_is_seen() -> None:
    assert {"pyarrow", "psycopg"} <= loaded("import pyarrow, psycopg")


@pytest.mark.parametrize("command", ["archiver.commit.find_holes", "archiver.replay.export"])
def test_short_commands_do_without_pandas(command: str) -> None:
    run = f"import archiver.light_start as arrow; arrow.spare_pandas(); import {command}, pyarrow; pyarrow.array([1])"
    assert "pandas" not in loaded(run)
    assert "pandas" in loaded(f"import {command}")  # or nothing is spared


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [(["status"], STATUS_NEEDS), (["replay", "orders"], REPLAY_NEEDS), (["groups", "list"], GROUPS_NEEDS)],
)
def test_short_commands_load_what_they_need(config: Path, arguments: list[str], needs: Sequence[str]) -> None:
    assert loaded(as_process([*arguments, "--config", str(config)])) == set(needs)


def test_an_archive_job_starts_without_pandas(config: Path) -> None:
    modules = loaded(as_process(["archive", "--once", "--config", str(config)]))
    assert {"pyspark", "psycopg"} <= modules
    assert "pandas" not in modules


def test_the_version_is_told_without_what_it_is_of() -> None:
    assert loaded(as_process(["--version"])) == set()


def test_pandas_is_there_for_who_asks() -> None:
    run = """
import archiver.light_start as arrow; arrow.spare_pandas()
import pyarrow
assert pyarrow.array([1, 2]).to_pandas().tolist() == [1, 2]"""
    assert "pandas" in loaded(run)


def test_pandas_stays_unloaded_and_importable() -> None:
    run = """
from archiver.light_start import without_pandas
with without_pandas():
    import pyarrow
    pyarrow.array([1])
    assert "pandas" not in sys.modules
pyarrow.array([1])
assert "pandas" not in sys.modules
import pandas"""
    assert "pandas" in loaded(run)


def test_imports_skip_collection_and_count_as_old() -> None:
    with quick_imports():
        assert not gc.isenabled()
        with quick_imports():
            many = [[] for _ in range(20_000)]
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_count()[0] < len(many)
    assert gc.get_freeze_count() == 0


def test_collections_pass_over_what_is_imported_for_good() -> None:
    try:
        with quick_imports(for_good=True):
            many = [[] for _ in range(20_000)]
        assert gc.isenabled()
        assert gc.get_freeze_count() > len(many)
    finally:
        gc.unfreeze()


def test_collections_go_on_after_an_import_that_fails() -> None:
    with pytest.raises(ImportError), quick_imports():
        importlib.import_module("archiver.no_such_module")
    assert gc.isenabled()
