"""Metadata, manifests and planning stay small after many commits."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pytest

from catalog.iceberg.expiry import SnapshotRetention
from tests.support.catalog.json_catalog import JsonCatalog
from tests.support.catalog.memory import span

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]

LIMIT = 5_000_000
ONCE_A_MINUTE = SnapshotRetention(seconds=0.0)  # a day of commits in a few minutes: nothing is young


def timed_plan(catalog: JsonCatalog) -> float:
    started = time.perf_counter()
    files = sum(1 for _ in catalog.load().iceberg.scan().plan_files())
    assert files
    return time.perf_counter() - started


def test_a_thousand_commits(tmp_path: Path) -> None:
    catalog = JsonCatalog(tmp_path)
    seconds, sizes = [], []
    for number in range(1_000):
        catalog.commit([span(0, number, number + 1)], ONCE_A_MINUTE)
        sizes.append(catalog.path.stat().st_size)
        if number >= 300 and number % 10 == 0:
            seconds.append(timed_plan(catalog) / (number + 1))
    assert max(sizes) < LIMIT
    assert max(sizes[500:]) < 1.2 * max(sizes[200:400])
    snapshot = catalog.load().iceberg.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(catalog.io)) < 100
    assert len(list((tmp_path / "metadata").glob("*.avro"))) < 400, "lists and manifests of expired snapshots are gone"
    assert median(seconds[-10:]) < 2 * median(seconds[:10]), "seconds for each file there is"


def test_commits_over_ten_thousand_partitions(tmp_path: Path) -> None:
    catalog = JsonCatalog(tmp_path)
    base = 1_000_000_000
    for number in range(40):
        start = base + number * 50
        ranges = [span(partition, start, start + 50, with_file=partition == 0) for partition in range(10_000)]
        catalog.commit(ranges, SnapshotRetention())
        assert catalog.path.stat().st_size < LIMIT
    table = catalog.load()
    assert len(table.properties["archiver.offsets"]) < 300_000
    assert len(table.iceberg.metadata.snapshots) >= 10
