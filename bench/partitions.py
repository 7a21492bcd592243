"""Cost of partitions by columns: orders archived by day, and by day and two columns.

The task reads its log from memory and writes local files. Medians of CPU time. `spilled` may keep 8 MiB in memory and
spools the rest.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from data import orders
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from values.orders import order_type

from archiver.ingest.task.values import TaskResult, TranslateTask
from archiver.ingest.task.work import translate_range
from catalog.iceberg.partition_spec import partitioning_for
from catalog.partitioning import terms_of
from schema_mapping import LedgerState, SourceSchema, assign
from tests.support.kafka.logs import Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record

TERMS = ("day", "val.customer.address.country", "bucket(8, key.__raw__)")
BATCH = 1_000
MEMORY = {"day": 128 << 20, "three columns": 128 << 20, "spilled": 8 << 20}


def tasks(folder: Path, records: int) -> dict[str, TranslateTask]:
    file = FileDescriptorProto()
    order_type().file.CopyToProto(file)
    source = SourceSchema(descriptor_set=FileDescriptorSet(file=[file]).SerializeToString(), message="shop.Order")
    assignment = assign(LedgerState(), value=source)
    draw = random.Random(1)
    log: list[bytes] = []
    gathered: list[Record] = []
    for order in orders(records):
        gathered.append(Record(timestamp=order.timestamp, key=b"%d" % draw.randrange(10**6), value=order.value))
        if len(gathered) == BATCH:
            log.append(batch(len(log) * BATCH, *gathered))
            gathered = []
    day = Bench(folder=folder, source=LogInMemory(log=log, cuts=range(10, len(log), 10)), row=assignment.row).task(
        0, len(log) * BATCH
    )
    by = partitioning_for(terms_of(TERMS), assignment.iceberg_schema, "nested")
    columns = replace(day, target=replace(day.target, partitioning=by))
    return {
        "day": day,
        "three columns": columns,
        "spilled": replace(columns, target=replace(columns.target, pending_bytes=MEMORY["spilled"])),
    }


def timed(task: TranslateTask, folder: Path) -> tuple[float, TaskResult]:
    started = time.process_time()
    result = translate_range(task)
    seconds = time.process_time() - started
    shutil.rmtree(folder / "table", ignore_errors=True)
    if result.error is not None:
        raise result.error
    return seconds, result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=200_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        times: dict[str, list[float]] = {}
        sizes: dict[str, str] = {}
        every = tasks(folder, asked.records)
        for turn in range(asked.rounds + 1):
            for name, task in every.items():
                seconds, result = timed(task, folder)
                files = [file for range_ in result.ranges for file in range_.files]
                sizes[name] = f"{len(files)} files, {sum(file.size_bytes for file in files) / 1e6:.2f} MB"
                if turn:
                    times.setdefault(name, []).append(seconds)
        base = statistics.median(times["day"])
        for name, seconds in times.items():
            middle = statistics.median(seconds)
            spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
            print(f"{name:14} {middle:6.2f} s ({spread}), {middle / base:4.2f} of day alone; {sizes[name]}")


if __name__ == "__main__":
    main()
