"""Compaction compared with Spark's `rewrite_data_files`: MB that a core rewrites in a second.

The orders of bench/data.py in 4 partitions, in files of 1 MiB. Sides take turns on fresh tables: the archiver's job in
this process; Spark on one core by bin packing, then by sorting. Seconds of the JVM count after its first query. Digests
of the results are compared.
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

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import psutil
from archive import stack
from data import create_topic, message_type, produce
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyiceberg.table.update import AssertTableUUID, SetSnapshotRefUpdate
from rich.console import Console
from rich.table import Table as Shown

from archiver.archive.topic_archive import open_archive
from archiver.config import Config, load_config
from archiver.demo.settings import sql_options
from archiver.engine.spark import SparkEngine
from archiver.engine.threads import ThreadEngine
from archiver.ingest.job import ArchiveJob
from archiver.local import Endpoints
from archiver.local.fetch import fetch_iceberg
from archiver.upkeep.compact.job import Compact, Wish
from archiver.wire.record_digest import RecordDigest
from tests.support.servers.stack import Stack, unique

TARGET = 256 << 20
PARTITIONS = 4
STRATEGIES = {
    "Spark, binpack": "strategy => 'binpack'",
    "Spark, sort": "strategy => 'sort', sort_order => 'kafka.partition, kafka.offset'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    side: str
    cpu_seconds: float
    seconds: float
    files: int
    size_bytes: int
    digest: str
    replay_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    servers: Stack
    topic: str
    value: dict[str, str]
    records: int

    @classmethod
    def filled(cls, endpoints: Endpoints, folder: Path, records: int) -> Shop:
        descriptors = FileDescriptorSet()
        message_type().file.CopyToProto(descriptors.file.add())
        (folder / "shop.binpb").write_bytes(descriptors.SerializeToString())
        topic = unique("orders")
        create_topic(endpoints.bootstrap_servers, topic, PARTITIONS)
        produce(endpoints.bootstrap_servers, topic, records)
        value = {"format": "protobuf", "message": "shop.Order", "descriptors": str(folder / "shop.binpb")}
        return cls(servers=Stack(endpoints, folder), topic=topic, value=value, records=records)

    def archived(self) -> Config:
        config = load_config(self.servers.config({self.topic: {"value": self.value, "target_file_size": "1MiB"}}))
        report = ArchiveJob(config, engine=ThreadEngine(2)).run_once()
        if not report.succeeded:
            raise RuntimeError(f"the orders were not archived: {report}")
        return config

    def files(self, config: Config) -> tuple[int, int]:
        files = self.servers.catalog().load_table(config.topic(self.topic).table).inspect.data_files()
        return files.num_rows, sum(files.column("file_size_in_bytes").to_pylist())

    def replayed(self, config: Config) -> Replayed:
        cpu, count, digest = time.process_time(), 0, RecordDigest()
        archive = open_archive(config, self.topic)
        for partition in range(PARTITIONS):
            last = -1
            for batch in archive.records(partition):
                offsets = batch.column("offset").to_numpy()
                if (np.diff(offsets, prepend=last) <= 0).any():
                    raise RuntimeError(f"partition {partition} is out of order from {offsets[0]} on")
                last, count = int(offsets[-1]), count + len(offsets)
                digest += RecordDigest.of_seen(batch)
        if count != self.records:
            raise RuntimeError(f"{count} of {self.records} records came back")
        return Replayed(digest=digest.text, cpu_seconds=time.process_time() - cpu)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    digest: str
    cpu_seconds: float


def ours(shop: Shop) -> Turn:
    config = shop.archived()
    cpu, started = time.process_time(), time.monotonic()
    wish = Wish(target_bytes=TARGET, min_files=2)
    report = Compact(config, wish=wish, engine=lambda: ThreadEngine(1)).run()
    cpu, seconds = time.process_time() - cpu, time.monotonic() - started
    if not report.succeeded or not report.topics[0].commits:
        raise RuntimeError(f"nothing was compacted: {report}")
    return turn("archiver compact", cpu, seconds, shop, config)


def turn(side: str, cpu: float, seconds: float, shop: Shop, config: Config) -> Turn:
    files, size = shop.files(config)
    replay = shop.replayed(config)
    return Turn(
        side=side,
        cpu_seconds=cpu,
        seconds=seconds,
        files=files,
        size_bytes=size,
        digest=replay.digest,
        replay_seconds=replay.cpu_seconds,
    )


def spark(shop: Shop, config: Config, engine: SparkEngine, side: str) -> Turn:
    servers, table = shop.servers, config.topic(shop.topic).table
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
    result = turn(side, cpu, seconds, shop, config)
    loaded = servers.catalog().load_table(table)
    back = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=before.snapshot_id)
    servers.catalog().commit_table(loaded, (AssertTableUUID(uuid=loaded.metadata.table_uuid),), (back,))
    return result


def _jvm() -> psutil.Process:
    return next(process for process in psutil.Process().children(recursive=True) if process.name() == "java")


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def measure(options: argparse.Namespace, endpoints: Endpoints, folder: Path) -> tuple[int, int, Replayed, list[Turn]]:
    shop = Shop.filled(endpoints, folder, options.records)
    config = shop.archived()
    count, size = shop.files(config)
    before = shop.replayed(config)
    turns: list[list[Turn]] = []
    settings = {"master": "local[1]", **sql_options(endpoints, fetch_iceberg(lambda _: None))}
    with SparkEngine.start(settings) as engine:
        sides: list[Callable[[], Turn]] = [lambda: ours(shop)]
        sides += [lambda side=side: spark(shop, config, engine, side) for side in STRATEGIES]  # type: ignore[misc]
        for number in range(options.rounds + 1):
            turns.append([side() for side in (sides if number % 2 else sides[::-1])])
            print(f"round {number}: {', '.join(f'{t.side} {t.cpu_seconds:.1f} s' for t in turns[-1])}", flush=True)
    return count, size, before, [result for pair in turns[1:] for result in pair]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compaction beside Spark's")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stack", type=Path, help="the folder of a running stack")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with stack(options.stack) as endpoints, TemporaryDirectory() as scratch:
        count, size, before, turns = measure(options, endpoints, Path(scratch))
    megabytes = size / 1e6
    shown = Shown(title=f"{count} files with {megabytes:.1f} MB; a replay takes {before.cpu_seconds:.1f} s of CPU")
    for heading in ("side", "core seconds", "MB/s a core", "times ours", "files", "MB after", "replay", "same records"):
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
            f"{turn.size_bytes / 1e6:.1f} ({turn.size_bytes / size - 1:+.1%})",
            f"{turn.replay_seconds:.1f}",
            "yes" if all(result.digest == before.digest for result in turns if result.side == side) else "NO",
        )
    Console(width=None if Console().is_terminal else 120).print(shown)
    if options.json:
        report = {
            "files": count,
            "megabytes": megabytes,
            "replay": asdict(before),
            "turns": [asdict(turn) for turn in turns],
        }
        options.json.write_text(json.dumps(report, indent=1))


def _median(turns: list[Turn], side: str) -> Turn:
    matching = [turn for turn in turns if turn.side == side]
    middle = statistics.median_low(turn.cpu_seconds for turn in matching)
    return next(turn for turn in matching if turn.cpu_seconds == middle)


if __name__ == "__main__":
    main()
