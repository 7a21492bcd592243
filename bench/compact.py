"""Compaction beside Spark's `rewrite_data_files` of the same table: how many MB a core rewrites in a second.

Recipe: `python bench/compact.py [--records 1000000] [--rounds 3] [--stack DIR] [--json FILE]`; the orders of
bench/data.py in 4 partitions, archived to files of about 1 MiB on an embedded stack, which is started and stopped
unless one is named.

The sides take turns. Ours chooses the groups as the job does and runs its tasks in this process: merge, upload, read
back, compare digests. What it made is deleted again, so the table stays as it was. Spark rewrites the table on one core
by bin packing, then by sorting (`kafka.partition, kafka.offset`), and the table is set back after each. Seconds are
those of one core: of this process, and of the JVM after its first query. MB are those of the old files.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import psutil
from archive import stack
from data import create_topic, message_type, produce
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyiceberg.table.update import AssertTableUUID, SetSnapshotRefUpdate
from rich.console import Console
from rich.table import Table as Shown

from archiver.config import load_config
from archiver.demo.settings import sql_options
from archiver.engine.spark import SparkEngine
from archiver.engine.threads import ThreadEngine
from archiver.ingest.job import ArchiveJob
from archiver.local import Endpoints
from archiver.local.fetch import fetch_iceberg
from archiver.storage.objects import ObjectStore
from archiver.upkeep.compact import job as compact_job
from archiver.upkeep.compact import rounds
from archiver.upkeep.compact.job import Compact, Wish
from tests.support.servers.stack import Stack, unique

TARGET = 256 << 20
PARTITIONS = 4
STRATEGIES = {
    "Spark, binpack": "strategy => 'binpack'",
    "Spark, sort": "strategy => 'sort', sort_order => 'kafka.partition, kafka.offset'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one side took, and what it left."""

    side: str
    cpu_seconds: float
    seconds: float
    files: int
    size_bytes: int


def archived(endpoints: Endpoints, folder: Path, records: int) -> tuple[Stack, Path, str]:
    """Archive the orders to small files."""
    found = FileDescriptorSet()
    message_type().file.CopyToProto(found.file.add())
    (folder / "shop.binpb").write_bytes(found.SerializeToString())
    topic = unique("orders")
    value = {"format": "protobuf", "message": "shop.Order", "descriptors": str(folder / "shop.binpb")}
    servers = Stack(endpoints, folder)
    config = servers.config({topic: {"value": value, "target_file_size": "1MiB"}})
    create_topic(endpoints.bootstrap_servers, topic, PARTITIONS)
    produce(endpoints.bootstrap_servers, topic, records)
    report = ArchiveJob(load_config(config), engine=ThreadEngine(2)).run_once()
    if not report.succeeded:
        raise RuntimeError(f"the orders were not archived: {report}")
    return servers, config, topic


class Uncommitted(rounds.Rounds):
    """Rounds that commit nothing."""

    made: tuple[str, ...] = ()
    size_bytes = 0

    def _commit(self, table: Any) -> bool:
        merged, self._merged = self._merged, []
        Uncommitted.made = tuple(path for _, each in merged for path in each.rewritten.new_paths)
        Uncommitted.size_bytes = sum(each.size_bytes for _, each in merged)
        for group, result in merged:
            self._note(table.topic, Done(commit_id="none"), [(group, result)])
        store = ObjectStore.of_table(table.iceberg)
        for path in self.made:
            store.delete(path)
        return False


@dataclass(frozen=True, slots=True)
class Done:
    """What a commit would have given."""

    commit_id: str


def ours(config: Path) -> Turn:
    """Compact without the commit."""
    compact_job.Rounds = Uncommitted  # type: ignore[misc]
    cpu, started = time.process_time(), time.monotonic()
    report = Compact(
        load_config(config), wish=Wish(target_bytes=TARGET, min_files=2), engine=lambda: ThreadEngine(1)
    ).run()
    if not report.succeeded or not report.done.files_before:
        raise RuntimeError(f"nothing was compacted: {report}")
    return Turn(
        side="archiver compact",
        cpu_seconds=time.process_time() - cpu,
        seconds=time.monotonic() - started,
        files=report.done.files_after,
        size_bytes=report.done.bytes_after,
    )


def spark(servers: Stack, engine: SparkEngine, table: str, side: str) -> Turn:
    """Rewrite the table, and set it back."""
    loaded = servers.catalog().load_table(table)
    before = loaded.current_snapshot()
    assert before is not None
    call = (
        f"CALL lake.system.rewrite_data_files(table => '{table}', {STRATEGIES[side]},"
        f" options => map('rewrite-all', 'true', 'target-file-size-bytes', '{TARGET}',"
        " 'max-concurrent-file-group-rewrites', '1'))"
    )
    jvm = _jvm()
    cpu, started = _cpu(jvm), time.monotonic()
    engine.session.sql(call).collect()
    cpu, seconds = _cpu(jvm) - cpu, time.monotonic() - started
    loaded = servers.catalog().load_table(table)
    files = loaded.inspect.data_files()
    found = Turn(
        side=side,
        cpu_seconds=cpu,
        seconds=seconds,
        files=files.num_rows,
        size_bytes=sum(files.column("file_size_in_bytes").to_pylist()),
    )
    back = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=before.snapshot_id)
    servers.catalog().commit_table(loaded, (AssertTableUUID(uuid=loaded.metadata.table_uuid),), (back,))
    return found


def _jvm() -> psutil.Process:
    return next(each for each in psutil.Process().children(recursive=True) if each.name() == "java")


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def measure(options: argparse.Namespace, endpoints: Endpoints, folder: Path) -> tuple[float, int, list[Turn]]:
    """Let the sides take turns; return the MB and the number of old files, and the turns without the first round."""
    servers, config, topic = archived(endpoints, folder, options.records)
    table = load_config(config).topic(topic).table
    files = servers.catalog().load_table(table).inspect.data_files()
    megabytes = sum(files.column("file_size_in_bytes").to_pylist()) / 1e6
    turns: list[list[Turn]] = []
    settings = {"master": "local[1]", **sql_options(endpoints, fetch_iceberg(lambda _: None))}
    with SparkEngine.start(settings) as engine:
        sides: list[Callable[[], Turn]] = [lambda: ours(config)]
        sides += [lambda side=side: spark(servers, engine, table, side) for side in STRATEGIES]  # type: ignore[misc]
        for number in range(options.rounds + 1):
            turns.append([side() for side in (sides if number % 2 else sides[::-1])])
            print(f"round {number}: {', '.join(f'{t.side} {t.cpu_seconds:.1f} s' for t in turns[-1])}", flush=True)
    return megabytes, files.num_rows, [turn for each in turns[1:] for turn in each]


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description="Compaction beside Spark's")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stack", type=Path, help="the folder of a running stack")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with stack(options.stack) as endpoints, TemporaryDirectory() as scratch:
        megabytes, count, turns = measure(options, endpoints, Path(scratch))
    shown = Shown(title=f"{count} files with {megabytes:.0f} MB")
    for heading in ("side", "core seconds", "MB/s a core", "times ours", "files", "MB after"):
        shown.add_column(heading, justify="left" if heading == "side" else "right")
    medians = {side: _median(turns, side) for side in ("archiver compact", *STRATEGIES)}
    for side, turn in medians.items():
        ratio = turn.cpu_seconds / medians["archiver compact"].cpu_seconds
        shown.add_row(
            side,
            f"{turn.cpu_seconds:.1f}",
            f"{megabytes / turn.cpu_seconds:.1f}",
            f"{ratio:.2f}",
            str(turn.files),
            f"{turn.size_bytes / 1e6:.1f}",
        )
    Console().print(shown)
    if options.json:
        found = {"files": count, "megabytes": megabytes, "turns": [asdict(turn) for turn in turns]}
        options.json.write_text(json.dumps(found, indent=1))


def _median(turns: list[Turn], side: str) -> Turn:
    those = [turn for turn in turns if turn.side == side]
    middle = statistics.median_low(turn.cpu_seconds for turn in those)
    return next(turn for turn in those if turn.cpu_seconds == middle)


if __name__ == "__main__":
    main()
