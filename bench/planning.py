"""Time and memory of planning in a table of very many files.

README.md: 1,000,000 files, at least 20,000. Generated manifests (`tables.many_files`), with metrics of 69 columns.
`columns` is the archiver's planning in the first process, `columns again` in the next, with the cache on disk,
`entries` pyiceberg's (15 KiB a file). Resident peaks have 175 MiB from imports.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from pyiceberg.table import Table
from tables.many_files import DAY, DAY_MICROS, PARTITIONS, ROWS, many_files

from archiver.archive.plan import TopicSnapshot, select_files
from archiver.archive.plan_cache import PlanCache
from archiver.archive.table_files import ManifestReader
from archiver.archive.watermarks import high_watermark, low_watermark
from archiver.storage.segment import RowRange


def timed(name: str, call: Callable[[], Any]) -> Any:
    started, used = time.perf_counter(), time.process_time()
    result = call()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    print(f"  {name:<46} {seconds:>9.3f} s {cpu:>9.3f} s CPU {peak:>8,.0f} MiB peak", flush=True)
    return result


def columns(table: Table, grown: Table, files: int, spool: Path) -> None:
    reader = ManifestReader(cache=PlanCache.below(spool))
    timed("imports alone", lambda: None)
    listing = timed("every manifest", lambda: reader.files(table))
    print(f"  {listing.columns.get_total_buffer_size() / len(listing):.0f} bytes a file kept")
    again = timed("refresh: one manifest of many is new", lambda: reader.files(grown))
    snapshot = TopicSnapshot(snapshot_id=1, files=again, next_offsets={}, storage=None)  # type: ignore[arg-type]
    last = files // PARTITIONS
    middle = last // 2 * ROWS
    noon = (DAY * DAY_MICROS + last // 2 * 10**6) // 1_000

    def planned(**asked: int) -> int:
        return sum(1 for _ in select_files(again, RowRange(partition=7, **asked)))

    assert timed("a range of offsets in one file", lambda: planned(start_offset=middle, end_offset=middle + 9)) == 1
    assert (
        timed("a range of offsets in a hundred", lambda: planned(start_offset=middle, end_offset=middle + 99_001))
        == 100
    )
    assert timed("from a time on: the first file", lambda: _first(again, noon)).endswith(".parquet")
    timed("partitions", lambda: snapshot.partitions)
    timed("low and high watermark", lambda: (low_watermark(snapshot, 7), high_watermark(snapshot, 7)))
    timed(
        "a hundred plans",
        lambda: [planned(start_offset=number, end_offset=number + 9) for number in range(0, 100 * ROWS, ROWS)],
    )
    every = timed("every file of one partition, one by one", planned)
    assert every == len(again) // PARTITIONS, every


def _first(files: Any, timestamp: int) -> str:
    return str(next(select_files(files, RowRange(partition=7, min_timestamp=timestamp))).path)


def entries(table: Table) -> None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    read = timed(
        "cold: every manifest read",
        lambda: [manifest.fetch_manifest_entry(table.io) for manifest in snapshot.manifests(table.io)],
    )
    print(f"  {sum(map(len, read)):,} entries")


def main() -> None:
    parser = argparse.ArgumentParser(description="Planning among many files")
    parser.add_argument("files", type=int, nargs="?", default=100_000)
    parser.add_argument("manifest_files", type=int, nargs="?", default=5_000)
    parser.add_argument("--entries", action="store_true", help="read them as pyiceberg does, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="archiver-planning-") as folder:
        started = time.perf_counter()
        listed = many_files(Path(folder), range(options.files), manifest_files=options.manifest_files)
        table = listed.table()
        size = sum(manifest.manifest_length for manifest in listed.manifests)
        fresh = range(options.files, options.files + options.manifest_files)
        more = many_files(Path(folder), fresh, manifest_files=options.manifest_files)
        listed.manifests += more.manifests
        grown = listed.table()
        print(
            f"{options.files:,} files in {len(listed.manifests) - 1:,} manifests, {size / options.files:,.0f} bytes an "
            f"entry, written in {time.perf_counter() - started:.0f} s"
        )
        spawned = multiprocessing.get_context("spawn")
        ours = (columns, table, grown, options.files, Path(folder) / "spool")
        sides: dict[str, tuple[Any, ...]] = {"columns": ours, "columns again": ours}
        if options.entries:
            sides["entries"] = (entries, table)
        for name, (run, *arguments) in sides.items():
            print(name, flush=True)
            process = spawned.Process(target=run, args=tuple(arguments))
            process.start()
            process.join()
            if process.exitcode:
                sys.exit(process.exitcode)


if __name__ == "__main__":
    main()
