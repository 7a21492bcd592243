"""Speed of `archiver serve flight`, compared with a plain pyarrow server that writes Parquet without a log.

Rows of five columns (about 70 B in Arrow) on one connection, as columns of a Protobuf message or as records of its
bytes. Sides, each in a process, with the client on the same cores:

- dropped: each batch is validated, encoded and acknowledged, without a log
- archiver: the whole command, with the log's fdatasync, typed Parquet, upload and commit; CPU is of the server until it
  has written everything and ended
- pyarrow: a server of Arrow's that writes Parquet to the log's disk and acknowledges without a sync

ACK times are of single batches at half of the side's rate. `disk` is what fdatasync takes in the same folder, after
writes of a batch's size.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import grpc
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from archive import stack
from google.protobuf import message_factory
from pyarrow import flight
from rich.console import Console
from rich.table import Table

from archiver.access.principals import ANONYMOUS
from archiver.access.rules import Access
from archiver.flight.identity import CallIdentity
from archiver.flight.memory import MessageMemory
from archiver.flight.service import FlightLimits, FlightService
from archiver.intake.batches import Acknowledgement, IntakeBatch
from archiver.intake.row_encoding import RowEncoding
from archiver.schemas.protobuf.schema_files import compile_proto
from schema_mapping import LedgerState, assign
from schema_mapping.protobuf.descriptors import find_descriptor
from tests.support.servers.stack import Stack, unique

PROTO = """
syntax = "proto3"; package bench;
message Reading { string device = 1; string site = 2; double temperature = 3; double humidity = 4; int64 number = 5; }
"""
MESSAGE = "bench.Reading"
SIDES = ("dropped", "archiver", "pyarrow")
SHAPES = ("rows", "records")
WINDOW = 8
PARTITIONS = 4
MESSAGE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    rows: int
    seconds: float
    bytes: int


def readings(shape: str, count: int, folder: Path) -> pa.RecordBatch:
    numbers = np.arange(count)
    columns = {
        "device": pa.array([f"device-{number % 1000:04}" for number in numbers]),
        "site": pa.array([f"site-{number % 37:03}-north" for number in numbers]),
        "temperature": pa.array(np.random.default_rng(1).normal(20, 5, count)),
        "humidity": pa.array(np.random.default_rng(2).uniform(0, 1, count)),
        "number": pa.array(numbers),
    }
    batch = pa.record_batch(columns)
    if shape == "rows":
        return batch
    reading = message_factory.GetMessageClass(find_descriptor(compile_proto(proto_in(folder), MESSAGE)))
    values = [reading(**row).SerializeToString() for row in batch.to_pylist()]
    return pa.record_batch({"key": columns["device"], "value": pa.array(values)})


def proto_in(folder: Path) -> Path:
    path = folder / "reading.proto"
    path.write_text(PROTO)
    return path


class DroppedTopic:
    """Acknowledges without a log."""

    partitions = PARTITIONS

    def __init__(self, folder: Path) -> None:
        row = assign(LedgerState(), value=compile_proto(proto_in(folder), MESSAGE)).row
        self.encoding = RowEncoding(row=row, key_column="device")

    def append(self, batch: IntakeBatch) -> Future[Acknowledgement]:
        done: Future[Acknowledgement] = Future()
        done.set_result(Acknowledgement(batch.batch_id, ()))
        return done


class EveryClient:
    async def identify(self, *_: Any) -> CallIdentity:
        return CallIdentity(Access(ANONYMOUS, ()), lambda: False)


async def serve_dropped(folder: Path) -> None:
    topics: Any = {"readings": DroppedTopic(folder)}
    identities: Any = EveryClient()
    with ThreadPoolExecutor(2) as workers:
        limits = FlightLimits(message_bytes=MESSAGE_BYTES, window=16)
        memory = MessageMemory(256 << 20)
        service = FlightService(topics, identities, limits=limits, memory=memory, workers=workers)
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", MESSAGE_BYTES)])
        server.add_generic_rpc_handlers((service.handlers(),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        say(f"127.0.0.1:{port}")
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()
        await server.stop(None)


class ParquetServer(flight.FlightServerBase):  # type: ignore[misc]
    def __init__(self, folder: Path) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self._folder = folder

    def do_put(self, _context: Any, _descriptor: Any, reader: Any, writer: Any) -> None:
        with pq.ParquetWriter(self._folder / f"{unique('put')}.parquet", reader.schema, compression="zstd") as file:
            for chunk in reader:
                file.write_batch(chunk.data)
                writer.write(chunk.app_metadata)


def say(address: str) -> None:
    sys.stdout.write(json.dumps({"address": address}) + "\n")
    sys.stdout.flush()


@contextmanager
def server(side: str, folder: Path, config: Path | None) -> Iterator[tuple[str, list[float]]]:
    """Yield the address, and a list that gets the CPU seconds of the process once it has ended."""
    command = [__file__, "--be", side, "--folder", str(folder)]
    if side == "archiver":
        assert config is not None
        command = ["-m", "archiver", "serve", "flight", "--listen", "127.0.0.1:0", "--json", "--config", str(config)]
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdout is not None
    seconds: list[float] = []
    address = json.loads(process.stdout.readline())["address"]
    before = cpu_of(process.pid)
    try:
        yield address, seconds
    finally:
        process.terminate()
        _, _, usage = os.wait4(process.pid, 0)
        seconds.append(usage.ru_utime + usage.ru_stime - before)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Sender:
    """One connection, with at most WINDOW unanswered batches."""

    def __init__(self, address: str, topic: str, batch: pa.RecordBatch, *, shape: str) -> None:
        self._client = flight.FlightClient(f"grpc://{address}")
        self._writer, self._reader = self._client.do_put(flight.FlightDescriptor.for_path(topic, shape), batch.schema)
        self._batch = batch
        self._next = 0

    def send(self) -> None:
        metadata = json.dumps({"client": "bench", "batch_id": self._next}).encode()
        self._writer.write_with_metadata(self._batch, metadata)
        self._next += 1

    def all_out(self, count: int) -> Sent:
        room = threading.Semaphore(WINDOW)
        answered = threading.Thread(target=lambda: [(self._reader.read(), room.release()) for _ in range(count)])
        started = time.perf_counter()
        answered.start()
        for _ in range(count):
            room.acquire()
            self.send()
        answered.join()
        seconds = time.perf_counter() - started
        return Sent(rows=count * self._batch.num_rows, seconds=seconds, bytes=count * self._batch.nbytes)

    def paced(self, count: int, *, pause: float) -> list[float]:
        """Return the seconds of each answer, for a batch every `pause` seconds."""
        times, due = [], time.perf_counter()
        for _ in range(count):
            time.sleep(max(0.0, due - time.perf_counter()))
            started = time.perf_counter()
            self.send()
            self._reader.read()
            times.append(time.perf_counter() - started)
            due += pause
        return times

    def close(self) -> None:
        self._writer.close()
        self._client.close()


def syncs(folder: Path, size: int, count: int) -> list[float]:
    times = []
    with (folder / "syncs").open("wb") as file:
        file.truncate(size * count)
        os.fsync(file.fileno())
        for _ in range(count):
            file.write(b"\1" * size)
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    return times


def milliseconds(times: list[float]) -> tuple[str, str]:
    return f"{np.percentile(times, 50) * 1e3:.1f}", f"{np.percentile(times, 99) * 1e3:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows over Flight")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--batch", type=int, default=10_000, help="rows of a batch")
    parser.add_argument("--answers", type=int, default=200, help="batches whose answers are timed")
    parser.add_argument("--stack", type=Path, help="the folder of a running stack")
    parser.add_argument("--side", choices=SIDES, action="append", help="only this one; may be given again")
    parser.add_argument("--shape", choices=SHAPES, action="append", help="only this one; may be given again")
    parser.add_argument("--be", choices=("dropped", "pyarrow"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    match options.be:
        case "dropped":
            asyncio.run(serve_dropped(options.folder))
        case "pyarrow":
            plain = ParquetServer(options.folder)
            say(f"127.0.0.1:{plain.port}")
            signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
            plain.serve()
        case _:
            contest(options)


def contest(options: argparse.Namespace) -> None:
    table = Table("side", "shape", "M rows/s", "MB/s", "CPU s per M rows", "ACK p50 ms", "p99")
    sides = options.side or SIDES
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="archiver-bench-")))
        endpoints = closing.enter_context(stack(options.stack)) if "archiver" in sides else None
        count = max(1, options.rows // options.batch)
        for shape in options.shape or SHAPES:
            batch = readings(shape, options.batch, folder)
            for side in sides:
                config, topic = None, "readings"
                if side == "archiver":
                    topic = unique("readings")
                    value = {"format": "protobuf", "message": MESSAGE, "proto": str(proto_in(folder))}
                    settings = {"source": "flight", "partitions": PARTITIONS, "key": "device", "value": value}
                    wal = {"wal": str(folder / topic)}
                    config = Stack(endpoints, folder / unique("scratch")).config({topic: settings}, flight=wal)
                with server(side, folder, config) as (address, cpu):
                    sender = Sender(address, topic, batch, shape=shape)
                    sent = sender.all_out(count)
                    pause = 2 * sent.seconds / count
                    answers = sender.paced(options.answers, pause=pause)
                    sender.close()
                millions = (sent.rows + options.answers * options.batch) / 1e6
                rate = f"{sent.rows / sent.seconds / 1e6:.2f}", f"{sent.bytes / sent.seconds / 1e6:.0f}"
                table.add_row(side, shape, *rate, f"{cpu[0] / millions:.2f}", *milliseconds(answers))
            table.add_row("disk", shape, "", "", "", *milliseconds(syncs(folder, batch.nbytes, options.answers)))
    Console().print(table)


if __name__ == "__main__":
    main()
