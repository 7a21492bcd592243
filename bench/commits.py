"""Size of metadata.json and time to commit and plan, over many commits.

Recipe: `python bench/commits.py [COMMITS] [PARTITIONS]` (default 1,000 and 1, then a tenth over 10,000 partitions;
docs/operations.md: 5,000). Commits of one file read and write the whole metadata.json. No snapshot counts as young.
Planning time per 1,000 files.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from catalog.iceberg.expiry import SnapshotRetention
from tests.support.catalog.json_catalog import JsonCatalog
from tests.support.catalog.memory import span

STEPS = 10
ADVANCE = 50


def measure(commits: int, partitions: int) -> None:
    print(f"{commits:,} commits over {partitions:,} partitions")
    print(f"{'commits':>8} {'metadata':>10} {'snapshots':>9} {'manifests':>9} {'commit':>9} {'plan/1000':>10}")
    with tempfile.TemporaryDirectory() as folder:
        catalog = JsonCatalog(Path(folder))
        seconds = 0.0
        largest = 0
        for number in range(1, commits + 1):
            start = (number - 1) * ADVANCE
            ranges = [span(number, start, start + ADVANCE, with_file=number == 0) for number in range(partitions)]
            started = time.perf_counter()
            catalog.commit(ranges, SnapshotRetention(seconds=0.0))
            seconds += time.perf_counter() - started
            largest = max(largest, catalog.path.stat().st_size)
            if number % max(1, commits // STEPS) == 0:
                report(catalog, number, largest, seconds / max(1, commits // STEPS))
                seconds, largest = 0.0, 0


def report(catalog: JsonCatalog, number: int, largest: int, commit_seconds: float) -> None:
    started = time.perf_counter()
    table = catalog.load().iceberg
    files = sum(1 for _ in table.scan().plan_files())
    plan_seconds = (time.perf_counter() - started) * 1_000 / files
    snapshot = table.current_snapshot()
    manifests = len(snapshot.manifests(catalog.io)) if snapshot else 0
    print(
        f"{number:>8,} {largest / 1e6:>7.2f} MB {len(table.snapshots()):>9} {manifests:>9} "
        f"{commit_seconds * 1e3:>6.0f} ms {plan_seconds * 1e3:>7.0f} ms",
        flush=True,
    )


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    if len(sys.argv) > 2:
        measure(wanted, int(sys.argv[2]))
    else:
        measure(wanted, 1)
        measure(wanted // 10, 10_000)
