"""Archived partitions with a number and size of files, ordered or overlapping."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from data import MIDNIGHT, Order, create_topic, send

from archiver.config import load_config
from archiver.engine.threads import ThreadEngine
from archiver.ingest.job import ArchiveJob
from archiver.local import Endpoints
from tests.support.catalog.foreign_writes import read, swap, table_of
from tests.support.servers.stack import Stack, unique

VALUE_BYTES = 2_000


def archived(endpoints: Endpoints, folder: Path, *, files: int, megabytes: int) -> tuple[Stack, Path, str]:
    topic = unique("inputs")
    servers = Stack(endpoints, folder)
    config = servers.config({topic: {}}, spark={"master": "local[1]"})
    create_topic(endpoints.bootstrap_servers, topic, 1)
    for _ in range(files):
        send(endpoints.bootstrap_servers, topic, _noise(megabytes * 10**6 // VALUE_BYTES))
        report = ArchiveJob(load_config(config), engine=ThreadEngine(1)).run_once()
        if not report.succeeded:
            raise RuntimeError(f"the inputs were not archived: {report}")
    return servers, config, topic


def interleaved(servers: Stack, config: Path, topic: str) -> None:
    table = table_of(servers, config, topic)
    pairs = read(table)
    rows = pa.concat_tables(part for _, part in pairs)
    dealt = [rows.take(pa.array(range(number, rows.num_rows, len(pairs)))) for number in range(len(pairs))]
    swap(table, [file for file, _ in pairs], dealt)


def files_of(servers: Stack, config: Path, topic: str) -> tuple[int, int]:
    files = table_of(servers, config, topic).inspect.data_files()
    return files.num_rows, sum(files.column("file_size_in_bytes").to_pylist())


def _noise(count: int) -> Iterator[Order]:
    draw = random.Random(7)
    for index in range(count):
        yield Order(key=b"%d" % index, value=draw.randbytes(VALUE_BYTES), timestamp=MIDNIGHT + index, headers=())
