"""Objects, bytes and listing time of a journal, before and after it is summed up.

Recipe: `python bench/journal.py [COMMITS] [PARTITIONS]` (default 10,000 and 1). Medians of five.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from ulid import ULID

from archiver.config import load_config
from archiver.storage.journal import Journal, TableJournal
from catalog.digests import digest_text
from catalog.model import TranslatedRange
from tests.support.catalog.memory import span
from tests.support.servers.embedded import embedded
from tests.support.servers.stack import Stack

ROUNDS = 5
HOURS = 2.0
WRITERS = 16


def measure(journal: TableJournal, commits: int, partitions: int) -> None:
    began = time.time() - HOURS * 3_600 - commits / 1_000

    def write(number: int) -> None:
        ranges = [_range(partition, number) for partition in range(partitions)]
        journal.keep_commit(str(ULID.from_timestamp(began + number / 1_000)), ranges)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(commits)))
    print(f"{commits:,} commits of {partitions:,} partitions")
    print(f"{'':>8} {'objects':>8} {'bytes':>11} {'listed in':>10} {'read in':>10}")
    before = report("alone", journal)
    started = time.perf_counter()
    journal.sum_up(settled_seconds=0.0)
    seconds = time.perf_counter() - started
    after = report("summed", journal)
    print(f"summed up in {seconds:.1f} s; the same ranges: {before == after}")


def report(name: str, journal: TableJournal) -> int:
    listed = journal.objects.list(str(journal.folder))
    list_seconds = median(journal.commits.listed)
    read_seconds = median(lambda: sum(1 for _ in journal.commits.read()))
    size = sum(entry.size for entry in listed)
    print(f"{name:>8} {len(listed):>8,} {size:>11,} {list_seconds:>8.3f} s {read_seconds:>8.3f} s", flush=True)
    return hash(tuple((range_.id, range_.partition, range_.offsets, range_.digest) for range_ in journal.read().ranges))


def median(call: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def _range(partition: int, number: int) -> TranslatedRange:
    range_ = span(partition, number * 100, number * 100 + 100)
    name = f"{range_.id.lower()}.parquet"
    path = f"s3://lake/warehouse/kafka/orders-{UUID(int=7)}/data/ingest_day=2026-11-23/orders-{partition}-{name}"
    digest = digest_text(hash((partition, number)) % (1 << 128))
    return replace(range_, files=tuple(replace(file, path=path, digest=digest) for file in range_.files))


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    wide = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as scratch, embedded(Path(scratch)) as stack:
        config = load_config(Stack(stack.up(), Path(scratch)).config())
        measure(Journal.of(config).named("kafka.orders", UUID(int=1)), many, wide)
