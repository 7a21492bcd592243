"""Speed of Kafka clients on `archiver serve kafka`, compared with its source broker.

The orders of bench/data.py in 4 partitions, as typed columns. Each consumer is a process with a share of the
partitions; seconds count until the last has read everything. Sides take turns: the broker, a server just started, and
its cache. CPU is of the server's process. `first record`: from an assignment in the middle of a partition, at a server
just started. librdkafka stops fetching for a second when 100,000 records are queued; `--backoff` sets another pause.
Because of the pauses, medians of five rounds differ by a tenth.

`--first-of 10GB` measures first records only, in one partition of this size, with 7 GB of disk in five minutes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import psutil
from confluent_kafka import Consumer, TopicPartition
from data import create_topic, message_type, orders, produce, send
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from rich.console import Console
from rich.table import Table

from archiver.config.quantities import parse_bytes
from archiver.local import Endpoints, LocalStack
from tests.support.archive.job_runs import archive_once
from tests.support.kafka.java_records import java
from tests.support.servers.stack import Stack, unique

PARTITIONS = 4
FIRST_RECORDS = 5
DISTINCT = 200_000
"""How many orders are made for a large topic. To make each anew takes longer than to produce it."""
CACHE = "1GiB"
ORIGINAL = "original"
READ_AT_ONCE = 10_000
BACKOFF_MS = 1000
"""librdkafka's own `fetch.queue.backoff.ms`."""
MILLION = 1_000_000
GB = 1_000_000_000
SPAWN = multiprocessing.get_context("spawn")


def consumer(address: str, backoff: int = BACKOFF_MS) -> Consumer:
    options = {"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False}
    reads = {"isolation.level": "read_committed", "auto.offset.reset": "error", "fetch.queue.backoff.ms": backoff}
    return Consumer({**options, **reads})


def read(address: str, topic: str, ends: dict[int, int], *, backoff: int, ready: Barrier, over: Any) -> None:
    reading = consumer(address, backoff)
    reading.list_topics(topic, 30)
    ready.wait()
    reading.assign([TopicPartition(topic, end, 0) for end in ends])
    left = sum(ends.values())
    while left > 0:
        messages = reading.consume(min(READ_AT_ONCE, left), 1.0)  # who asks for more waits for it at the end
        for message in messages:
            if message.error() is not None:
                raise RuntimeError(message.error())
        left -= len(messages)
    over.put(time.monotonic())
    reading.close()


def all_read(address: str, topic: str, ends: dict[int, int], readers: int, backoff: int) -> float:
    ready, over = SPAWN.Barrier(readers + 1), SPAWN.Queue()
    shares = [{item: end for item, end in ends.items() if item % readers == number} for number in range(readers)]
    settings = {"backoff": backoff, "ready": ready, "over": over}
    running = [SPAWN.Process(target=read, args=(address, topic, share), kwargs=settings) for share in shares]
    for item in running:
        item.start()
    ready.wait()
    began = time.monotonic()
    ended = max(over.get(timeout=600) for _ in running)
    for item in running:
        item.join()
    return ended - began


def read_by_java(address: str, topic: str, count: int) -> float:
    output = java(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", address, "--topic", topic, "--num-records", str(count), "--group", unique("perf")),
        *("--timeout", "60000"),
    )
    head, row = (line.split(", ") for line in output.strip().splitlines()[-2:])
    columns = dict(zip(head, row, strict=True))
    name = next(column for column in columns if column.startswith("fetch.time"))
    return float(columns[name]) / 1000


def first_record(address: str, topic: str, offset: int) -> float:
    reading = consumer(address)
    reading.list_topics(topic, 30)
    began = time.monotonic()
    reading.assign([TopicPartition(topic, 0, offset)])
    message = reading.poll(30.0)
    took = time.monotonic() - began
    if message is None or message.error() is not None or message.offset() != offset:
        raise RuntimeError(message)
    reading.close()
    return took


@contextmanager
def server(config: Path, log: Path) -> Iterator[tuple[str, psutil.Process]]:
    command = [sys.executable, "-m", "archiver", "serve", "kafka", "--listen", "127.0.0.1:0", "--json"]
    with (
        log.open("ab") as errors,
        subprocess.Popen([*command, "--config", str(config)], stdout=subprocess.PIPE, stderr=errors, text=True) as run,  # noqa: S603
    ):
        assert run.stdout is not None
        yield json.loads(run.stdout.readline())["advertise"], psutil.Process(run.pid)
        run.terminate()


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def measured(
    found: dict[tuple[str, str], list[tuple[float, float]]], name: tuple[str, str], process: psutil.Process, turn: Any
) -> None:
    before = cpu(process)
    seconds = turn()
    found.setdefault(name, []).append((seconds, cpu(process) - before))


def archived(endpoints: Endpoints, folder: Path, topic: str) -> Path:
    descriptors = folder / "shop.binpb"
    files = FileDescriptorSet()
    message_type().file.CopyToProto(files.file.add())
    descriptors.write_bytes(files.SerializeToString())
    value = {"format": "protobuf", "message": "shop.Order", "descriptors": str(descriptors)}
    serve = {"cache_size": CACHE, "compression": ORIGINAL}
    config = Stack(endpoints, folder).config({topic: {"value": value}}, serve=serve)
    archive_once(config)
    return config


def serving(config: Path, compression: str) -> Path:
    if compression == ORIGINAL:
        return config
    path = config.with_name(f"{compression}.toml")
    text = config.read_text()
    line = '"compression" = "{}"'.format
    if text.count(line(ORIGINAL)) != 1:
        raise RuntimeError(f"{config} doesn't say its compression once")
    path.write_text(text.replace(line(ORIGINAL), line(compression)))
    path.chmod(0o600)
    return path


def play_first(options: argparse.Namespace, endpoints: Endpoints, folder: Path) -> dict[str, Any]:
    topic, broker, size = unique("orders"), endpoints.bootstrap_servers, options.first_of
    create_topic(broker, topic, 1)
    some = tuple(orders(DISTINCT))
    count = round(size / (sum(len(item.value) for item in some) / len(some)))
    began = time.monotonic()
    send(broker, topic, islice(cycle(some), count))
    produced = time.monotonic()
    config = archived(endpoints, folder, topic)
    seconds = {"produce": produced - began, "archive": time.monotonic() - produced}
    log = folder / "server.log"
    names = ("broker", "ours, just started", "ours, its second place")
    firsts: dict[str, list[float]] = {name: [] for name in names}
    for number in range(FIRST_RECORDS):
        first, second = (count // 3 + count * item // (6 * FIRST_RECORDS) for item in (2 * number, 2 * number + 1))
        with server(config, log) as (address, _):
            for name, at, offset in zip(names, (broker, address, address), (first, first, second), strict=True):
                firsts[name].append(first_record(at, topic, offset))
    return {"records": count, "bytes": size, "seconds": seconds, "turns": [], "first_record": firsts}


def play(options: argparse.Namespace, endpoints: Endpoints, folder: Path) -> dict[str, Any]:
    topic, broker = unique("orders"), endpoints.bootstrap_servers
    create_topic(broker, topic, PARTITIONS)
    produce(broker, topic, options.records)
    config = archived(endpoints, folder, topic)
    servers = {
        f"ours, {codec}" if codec != ORIGINAL else "ours": serving(config, codec) for codec in options.compression
    }
    asking = consumer(broker)
    ends = {number: asking.get_watermark_offsets(TopicPartition(topic, number), 30)[1] for number in range(PARTITIONS)}
    asking.close()
    status = LocalStack(endpoints.directory).status()
    brokers = psutil.Process(next(part.pid for part in status.parts if part.name == "kafka"))
    times: dict[tuple[str, str], list[tuple[float, float]]] = {}
    log = folder / "server.log"
    count = sum(ends.values())
    for _ in range(options.rounds):
        for readers in options.consumers:
            name = f"{readers} x confluent-kafka"

            def turn(address: str, readers: int = readers) -> float:
                return all_read(address, topic, ends, readers, options.backoff)

            measured(times, (name, "broker"), brokers, lambda turn=turn: turn(broker))
            for ours, served in servers.items():
                with server(served, log) as (address, process):
                    for side in (f"{ours}, cold", f"{ours}, cached"):
                        measured(times, (name, side), process, lambda turn=turn, address=address: turn(address))
        if options.java:
            measured(times, ("Java", "broker"), brokers, lambda: read_by_java(broker, topic, count))
            for ours, served in servers.items():
                with server(served, log) as (address, process):
                    for side in (f"{ours}, cold", f"{ours}, cached"):
                        by_java = lambda address=address: read_by_java(address, topic, count)  # noqa: E731
                        measured(times, ("Java", side), process, by_java)
    firsts: dict[str, list[float]] = {"broker": [], "ours": []}
    with server(config, log) as (address, _):
        for number in range(FIRST_RECORDS):
            offset = ends[0] * (2 * number + 1) // (2 * FIRST_RECORDS)
            firsts["broker"].append(first_record(broker, topic, offset))
            firsts["ours"].append(first_record(address, topic, offset))
    return {
        "records": count,
        "turns": [
            {"clients": name, "side": side, "seconds": [a for a, _ in turns], "cpu": [b for _, b in turns]}
            for (name, side), turns in times.items()
        ],
        "first_record": firsts,
    }


def shown(results: dict[str, Any], console: Console) -> None:
    count = results["records"]
    table = Table(title=f"{count:,} records")
    for heading in ("clients", "side", "records/s", "least to most", "of the broker's", "server CPU s a million"):
        table.add_column(heading, justify="left" if heading in {"clients", "side"} else "right")
    broker: dict[str, float] = {}
    for turn in results["turns"]:
        rates = [count / seconds for seconds in turn["seconds"]]
        rate = statistics.median(rates)
        if turn["side"] == "broker":
            broker[turn["clients"]] = rate
        spent = statistics.median(turn["cpu"]) / count * MILLION
        spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
        ratio = f"{rate / broker[turn['clients']]:.2f}"
        table.add_row(turn["clients"], turn["side"], f"{rate:,.0f}", spread, ratio, f"{spent:.2f}")
    if results["turns"]:
        console.print(table)
    else:
        durations = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in results["seconds"].items())
        console.print(f"{count:,} records with values of {results['bytes'] / GB:.1f} GB in one partition ({durations})")
    for side, seconds in results["first_record"].items():
        took = f"{statistics.median(seconds) * 1000:.0f} ms ({min(seconds) * 1000:.0f} to {max(seconds) * 1000:.0f})"
        console.print(f"first record from the middle, {side}: {took}")


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Kafka clients at the archive, and at the broker")
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--consumers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--first-of", type=parse_bytes, metavar="BYTES", help="only first records, of so many bytes")
    parser.add_argument("--stack", type=Path, help="the folder of a running stack")
    parser.add_argument("--java", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--backoff", type=int, default=BACKOFF_MS, metavar="MS", help="librdkafka's pause")
    parser.add_argument("--compression", nargs="+", default=[ORIGINAL], help="settings of serve.compression")
    parser.add_argument("--json", type=Path, help="a file for all the numbers")
    return parser.parse_args(given)


def main() -> None:
    options = arguments()
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="serve-")))
        if options.stack is None:
            local = LocalStack(folder / "stack")
            ending.callback(local.down)
            endpoints = local.up()
        else:
            endpoints = LocalStack(options.stack).endpoints
        results = (play_first if options.first_of else play)(options, endpoints, folder)
    shown(results, Console())
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
