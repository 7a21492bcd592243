"""What a run of the job costs for each topic, and how many Postgres connections it takes at most.

Recipe: `python bench/topics.py [10 100 1000] [--beside DIR] [--rounds 3] [--stack DIR] [--in-process] [--profile]
[--json FILE]`. For each number, there are as many topics of one partition on an embedded stack, which is started and
stopped unless one is named. Its Postgres has the default `max_connections` of 100. The first run makes the tables and
archives one record a topic. Then each round has two runs: one archives one new record a topic, the other finds nothing
new. Tasks run on Spark, two at a time, or with `--in-process` in threads of the driver, without a JVM. `--beside` is
another checkout whose kernels are compiled; it has a process, topics and a registry of its own, and both take turns,
run by run. CPU is user and system time of driver, JVM and Python workers, without broker, Postgres, S3 and catalog,
though these run on the same two cores. Memory is the peak of their proportional set sizes. Results are medians of the
rounds. `--profile` prints what the driver spent each run on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import psycopg
from archiving.player import HERE, Player
from confluent_kafka.admin import NewTopic
from rich.console import Console
from rich.table import Table

from archiver.config import load_config
from archiver.local import LocalStack
from tests.support.servers.stack import Stack, unique

COUNTS = (10, 100, 1_000)
LOOK_SECONDS = 0.02
FIRST, NEW, NOTHING = "first", "one new record", "nothing new"
MIB = 1 << 20


@contextmanager
def most_connections(dsn: str) -> Iterator[list[int]]:
    """Yield the most connections at once, without the watcher's."""
    most, over = [0], threading.Event()

    def watch() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not over.wait(LOOK_SECONDS):
                row = connection.execute(
                    "SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()"
                ).fetchone()
                most[0] = max(most[0], row[0] if row else 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()


def make_topics(stack: Stack, count: int) -> list[str]:
    prefix = unique("topics")
    names = [f"{prefix}_{number:04}" for number in range(count)]
    made = stack.admin.create_topics([NewTopic(name, 1, 1) for name in names], operation_timeout=300)
    for future in made.values():
        future.result(300)
    return names


def produce(stack: Stack, names: Sequence[str]) -> None:
    producer = stack.producer()
    for name in names:
        producer.produce(name, b"one more record")
    if producer.flush(300):
        raise TimeoutError


@dataclass(slots=True)
class TimedCheckout:
    name: str
    player: Player
    took: dict[tuple[int, str], list[dict[str, Any]]] = field(default_factory=dict)

    def run(self, count: int, run: str, dsn: str, asked: dict[str, Any]) -> None:
        with most_connections(dsn) as most:
            cost = self.player.turn(json.dumps(asked))
        self.took.setdefault((count, run), []).append(cost | {"connections": most[0]})
        seconds = f"{cost['wall_seconds']:.1f} s, {cost['cpu_seconds']:.2f} CPU s"
        print(f"{count:,} topics, {run}, {self.name}: {cost['records']:,} records, {seconds}", flush=True)


def measure(stack: Stack, count: int, sides: Sequence[TimedCheckout], rounds: int) -> None:
    topics = [make_topics(stack, count) for _ in sides]
    configs = [stack.config({name: {} for name in names}) for names in topics]
    dsns = [load_config(path).registry.dsn for path in configs]
    asked: list[dict[str, Any]] = [
        {"config": str(path), "topics": names} for path, names in zip(configs, topics, strict=True)
    ]
    for run in (FIRST, *(NEW, NOTHING) * rounds):
        if run != NOTHING:
            for names in topics:
                produce(stack, names)
        for side, dsn, line in zip(sides, dsns, asked, strict=True):
            side.run(count, run, dsn, line if run == FIRST else {})
            if side.took[count, run][-1]["records"] != (0 if run == NOTHING else count):
                raise RuntimeError(f"{side.name} archived other records than there are")


def show(sides: Sequence[TimedCheckout]) -> None:
    table = Table(title="Medians; least to most")
    for heading in ("topics", "run", "side", "ms a topic", "CPU ms a topic", "of it", "conns", "MiB"):
        table.add_column(heading, justify="left" if heading in {"run", "side", "of it"} else "right")
    for count, run in sides[0].took:
        for side in sides:
            turns = side.took[count, run]
            times = [[1e3 * turn[key] / count for turn in turns] for key in ("wall_seconds", "cpu_seconds")]
            split = {
                name: statistics.median(turn["split"].get(name, 0) for turn in turns) for name in turns[0]["split"]
            }
            table.add_row(
                f"{count:,}",
                run,
                side.name,
                *(f"{statistics.median(time):,.0f} ({min(time):,.0f} to {max(time):,.0f})" for time in times),
                ", ".join(f"{name} {1e3 * spent / count:.0f}" for name, spent in split.items()),
                str(max(turn["connections"] for turn in turns)),
                f"{max(turn['memory'] for turn in turns) / MIB:,.0f}",
            )
    Console(width=None if Console().is_terminal else 140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", nargs="*", type=int, default=COUNTS)
    parser.add_argument("--beside", type=Path, help="another checkout, which takes turns")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stack", type=Path, help="the folder of a stack that `archiver local up` started")
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", type=Path, help="a file for all the numbers")
    arguments = parser.parse_args()
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="topics-")))
        local = LocalStack(arguments.stack or folder / "stack")
        if arguments.stack is None:
            closing.callback(local.down)
        stack = Stack(local.up(), folder)
        with psycopg.connect(stack.postgres_dsn) as connection:
            print("max_connections", *(connection.execute("SHOW max_connections").fetchone() or ()))
        command = ["-m", "archiving.many_topics"]
        command += [f"--{name}" for name in ("in-process", "profile") if vars(arguments)[name.replace("-", "_")]]
        checkouts = {"here": HERE} | ({"beside": arguments.beside.resolve()} if arguments.beside else {})
        sides = []
        for name, checkout in checkouts.items():
            sides.append(TimedCheckout(name, Player(command, checkout=checkout)))
            closing.callback(sides[-1].player.close)
        for count in arguments.counts:
            measure(stack, count, sides, arguments.rounds)
    show(sides)
    if arguments.json:
        report = {
            side.name: [{"topics": count, "run": run, "turns": turns} for (count, run), turns in side.took.items()]
            for side in sides
        }
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
