"""What a run of the job costs for each topic, and how many Postgres connections it takes at most.

Recipe: `python bench/topics.py [10 100 1000] [--stack DIR] [--in-process] [--profile]`. For each number, there are as
many topics of one partition on an embedded stack, which is started and stopped unless one is named. Its Postgres has
the default `max_connections` of 100. One job runs three times: the first run makes the tables and archives one record a
topic, the second archives one new record a topic, the third finds nothing new. Tasks run on Spark, two at a time, or
with `--in-process` in threads of the driver, without a JVM. CPU is user and system time of driver, JVM and Python
workers, without broker, Postgres, S3 and catalog, though these run on the same two cores. `--profile` prints what the
driver spent the second run on.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import psycopg
from archiving.cost import Cost, measured
from archiving.side import SLOTS
from confluent_kafka.admin import NewTopic

from archiver.config import load_config
from archiver.engine.runner import Engine
from archiver.ingest.job import ArchiveJob
from archiver.ingest.task.work import MODULES
from archiver.local import LocalStack
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack, unique

COUNTS = (10, 100, 1_000)
LOOK_SECONDS = 0.02
RUNS = ("first", "one new record", "nothing new")


@contextmanager
def most_connections(dsn: str) -> Iterator[list[int]]:
    """Yield a list whose only number is the most connections that the database had at once, without the watcher's."""
    most, over = [0], threading.Event()

    def watch() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not over.wait(LOOK_SECONDS):
                found = connection.execute(
                    "SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()"
                ).fetchone()
                most[0] = max(most[0], found[0] if found else 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()


def make_topics(stack: Stack, count: int) -> list[str]:
    """Create this many topics of one partition."""
    prefix = unique("topics")
    names = [f"{prefix}_{number:04}" for number in range(count)]
    made = stack.admin.create_topics([NewTopic(name, 1, 1) for name in names], operation_timeout=300)
    for future in made.values():
        future.result(300)
    return names


def produce(stack: Stack, names: Sequence[str]) -> None:
    """Produce one record to each topic."""
    producer = stack.producer()
    for name in names:
        producer.produce(name, b"one more record")
    if producer.flush(300):
        raise TimeoutError


def measure(stack: Stack, count: int, engine: Engine, *, profile: bool) -> None:
    """Print a line for each of the three runs."""
    names = make_topics(stack, count)
    config = load_config(stack.config({name: {} for name in names}))
    job = ArchiveJob(config, names, engine=engine)

    def archive() -> int:
        report = job.run_once()
        if not report.succeeded:
            raise RuntimeError(next(failure for topic in report.topics for failure in topic.failures))
        return report.records

    for number, run in enumerate(RUNS):
        if run != RUNS[-1]:
            produce(stack, names)
        profiler = cProfile.Profile() if profile and number else None
        with most_connections(config.registry.dsn) as most:
            cost = measured(profiled(profiler, archive) if profiler else archive)
        show(count, run, cost, most[0])
        if profiler:
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(60)


def profiled(profiler: cProfile.Profile, turn: Callable[[], int]) -> Callable[[], int]:
    """Wrap the turn so that the profiler watches it."""
    return lambda: int(profiler.runcall(turn))


def show(count: int, run: str, cost: Cost, connections: int) -> None:
    """Print one line."""
    split = ", ".join(f"{name} {1e3 * spent / count:.0f}" for name, spent in cost.split.items())
    print(
        f"{count:>7,} {run:<15} {cost.wall_seconds:>8.1f} s {1e3 * cost.wall_seconds / count:>8.0f} ms"
        f" {1e3 * cost.cpu_seconds / count:>8.0f} ms {connections:>6}   {split}",
        flush=True,
    )


def main() -> None:
    """Measure each number of topics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", nargs="*", type=int, default=COUNTS)
    parser.add_argument("--stack", type=Path, help="the folder of a stack that `archiver local up` started")
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="topics-")))
        local = LocalStack(arguments.stack or folder / "stack")
        if arguments.stack is None:
            closing.callback(local.down)
        stack = Stack(local.up(), folder)
        with psycopg.connect(stack.postgres_dsn) as connection:
            print("max_connections", *(connection.execute("SHOW max_connections").fetchone() or ()))
        engine: Engine = InlineEngine()
        if not arguments.in_process:
            from archiver.engine.spark import SparkEngine

            engine = closing.enter_context(SparkEngine.start({"master": SLOTS}, preloaded=MODULES))
        print(f"{'topics':>7} {'run':<15} {'wall':>10} {'a topic':>11} {'CPU':>11} {'conns':>6}   ms of CPU a topic")
        for count in arguments.counts:
            measure(stack, count, engine, profile=arguments.profile)


if __name__ == "__main__":
    main()
