"""Files of a selection, by manifests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from archiver.archive.tables import CatalogTables
from archiver.cli.app import app
from archiver.errors import ConfigError
from archiver.records.listed_files import check_points, listed_files
from archiver.records.selection import Selection
from tests.support.archive.lake import Lake

DAY_MS = 86_400_000
TUESDAY = 1_793_664_000_000
"""2026-11-03T00:00:00Z."""


@pytest.fixture
def lake(tmp_path: Path, archive: Any) -> Lake:
    made = Lake(tmp_path / "lake", archive.rows)
    for day in range(5):
        add(made, archive, 0, day * 10, TUESDAY + (day - 2) * DAY_MS)
    add(made, archive, 1, 0, TUESDAY)
    return made


def add(lake: Lake, archive: Any, partition: int, start: int, time: int) -> None:
    rows = [
        archive.row(offset=start + n, partition=partition, value=b"v", timestamp=time + n * 1_000) for n in range(10)
    ]
    lake.add(archive.rows, archive.batch(rows), start, start + 10, partition=partition)


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ({}, [(0, 0), (0, 10), (0, 20), (0, 30), (0, 40), (1, 0)]),
        ({"start": "2026-11-03", "end": "2026-11-04"}, [(0, 20), (0, 30), (1, 0)]),
        ({"start": "2026-11-03", "end": "2026-11-04", "partitions": (0,)}, [(0, 20), (0, 30)]),
        ({"start": "25", "end": "31", "partitions": (0,)}, [(0, 20), (0, 30)]),
        ({"start": "2026-11-03T00:00:10Z", "end": "2026-11-04"}, [(0, 30)]),
        ({"partitions": (7,)}, []),
    ],
)
def test_files_of_a_selection(lake: Lake, options: dict[str, Any], places: list[tuple[int, int]]) -> None:
    files = listed_files(lake.load("orders"), Selection.parse(**options))
    assert [(file.partitions and file.partitions.low, file.offsets and file.offsets.low) for file in files] == places
    assert {file.records for file in files} <= {10}


def test_the_end_is_no_start() -> None:
    with pytest.raises(ConfigError, match="no file begins at the end"):
        check_points(Selection.parse(start="latest"))


def test_the_command_prints_files(tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CatalogTables, "load", lambda _self, topic: lake.load(topic))
    config = tmp_path / "archiver.toml"
    config.write_text(
        """
        kafka."bootstrap.servers" = "127.0.0.1:1"
        catalog.uri = "http://127.0.0.1:1"
        registry.dsn = "postgresql://archiver@127.0.0.1:1/none"
        topics.orders = {}
        """
    )
    words = ["files", "orders", "--from", "2026-11-03", "--to", "2026-11-04", "--config", str(config)]
    machine = CliRunner().invoke(app, [*words, "--json"])
    assert machine.exit_code == 0, machine.output
    line = json.loads(machine.stdout)
    assert (line["event"], line["table"], len(line["files"])) == ("files", "kafka.orders", 3)
    first = line["files"][0]
    assert (first["first_offset"], first["last_offset"], first["records"]) == (20, 29, 10)
    assert (first["earliest"], first["latest"]) == ("2026-11-03T00:00:00.000Z", "2026-11-03T00:00:09.000Z")
    text = CliRunner().invoke(app, [*words, "--no-json"])
    assert "20 to 29" in text.stdout
    assert first["path"] in text.stdout
    assert "orders in kafka.orders: 3 files, 30 records, " in text.stdout
