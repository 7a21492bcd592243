"""Which ranges a verification reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.records.selection import Selection
from archiver.upkeep.verify.choice import MatchingRanges, VerifyChoice
from tests.support.archive.lake import Lake


@dataclass(frozen=True)
class Offsets:
    partition: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True)
class Range:
    range: Offsets


RANGES = tuple(Range(Offsets(*values)) for values in ((0, 10, 20), (0, 0, 10), (1, 0, 10)))


@pytest.fixture
def lake(tmp_path: Path, archive: Any) -> Lake:
    made = Lake(tmp_path / "lake", archive.rows)
    for partition, start in ((0, 0), (0, 10), (1, 0)):
        rows = [archive.row(offset=start + n, partition=partition, key=b"k%d" % (start + n)) for n in range(10)]
        made.add(archive.rows, archive.batch(rows), start, start + 10, partition=partition)
    return made


@pytest.mark.parametrize(
    ("where", "places"),
    [
        ("key = 'k12'", {0}),
        ("key in ('k3', 'k12')", {0, 1, 2}),
        ("key = 'k3' and partition = 0", {1}),
        ("offset >= 10", {0}),
        ("key = 'none'", set()),
    ],
)
def test_ranges_with_matching_records_are_chosen(lake: Lake, where: str, places: set[int]) -> None:
    selection = VerifyChoice.parse(where=where).selection
    matching = MatchingRanges.find(lake.archive(), selection, cast("Any", RANGES))
    assert (matching.places, matching.doubt) == (frozenset(places), None)


def test_a_condition_is_not_everything() -> None:
    assert VerifyChoice.parse().is_all
    assert not VerifyChoice.parse(where="offset = 1").is_all
    assert VerifyChoice.parse(where="offset = 1").selection == Selection.parse(where="offset = 1")


def test_a_condition_needs_catalog_and_registry(tmp_path: Path) -> None:
    words = ["verify", "orders", "--where", "val.id = 1", "--without-registry", "--no-json"]
    done = CliRunner().invoke(app, [*words, "--config", str(tmp_path / "nowhere.toml")])
    assert done.exit_code == 2
    assert "it needs the catalog and the registry" in done.stderr
