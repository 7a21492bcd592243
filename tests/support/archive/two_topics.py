"""Two archived topics: a damaged and a good one."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from tests.support.archive.job_runs import archive_once
from tests.support.archive.listed_table import position_deletes
from tests.support.archive.readers import Seen, from_archive, from_kafka
from tests.support.archive.retirements import DAY, START
from tests.support.catalog.delete_manifests import add_delete_files
from tests.support.catalog.foreign_writes import table_of
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

PARTITIONS = 2
DAYS = 4
EACH = 10
"""Records of a day in a partition. Each day has a file in each partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    code: int
    text: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def of(self, topic: str) -> dict[str, Any]:
        (result,) = (line for line in self.lines if line.get("topic") == topic and "failures" in line)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoTopics:
    stack: Stack
    config: Path
    bad: str
    good: str

    @classmethod
    def archived(cls, stack: Stack, **settings: Any) -> TwoTopics:
        bad, good = stack.topic(PARTITIONS), stack.topic(PARTITIONS)
        sections = {name: {"snapshot_retention": "0s", **settings} for name in (bad, good)}
        config = stack.config(sections)
        for day in range(DAYS):
            for topic in (bad, good):
                stack.produce(topic, *_of_day(day))
            archive_once(config)
        return cls(stack=stack, config=config, bad=bad, good=good)

    def run(self, *words: str, as_json: bool = True, monkeypatch: pytest.MonkeyPatch) -> Ran:
        monkeypatch.setattr("archiver.engine.choice.start_spark", lambda *_, **__: nullcontext(InlineEngine()))
        form = "--json" if as_json else "--no-json"
        done = CliRunner().invoke(app, [*words, "--config", str(self.config), form], env={"COLUMNS": "400"})
        return Ran(code=done.exit_code, text=done.stdout)

    def kafka(self, topic: str) -> list[Seen]:
        return from_kafka(self.stack, topic, PARTITIONS)

    def archive(self, topic: str) -> list[Seen]:
        return from_archive(self.config, topic, PARTITIONS)

    def files(self, topic: str) -> dict[tuple[int, int], DataFile]:
        table = table_of(self.stack, self.config, topic)
        partition, offset = (table.schema().find_field(f"kafka.{name}").field_id for name in ("partition", "offset"))
        result = {}
        for manifest in table.current_snapshot().manifests(table.io):
            entries = manifest.fetch_manifest_entry(table.io)
            for entry in (entry for entry in entries if entry.data_file.content == DataFileContent.DATA):
                low = entry.data_file.lower_bounds or {}
                position = (_number(low.get(partition)), _number(low.get(offset)))
                result[position] = entry.data_file
        return result

    def read(self, path: str) -> bytes:
        with table_of(self.stack, self.config, self.bad).io.new_input(path).open() as stream:
            return bytes(stream.read())

    def write(self, path: str, data: bytes) -> None:
        with table_of(self.stack, self.config, self.bad).io.new_output(path).create(overwrite=True) as stream:
            stream.write(data)

    def delete(self, path: str) -> None:
        table_of(self.stack, self.config, self.bad).io.delete(path)

    def exists(self, path: str) -> bool:
        return bool(table_of(self.stack, self.config, self.bad).io.new_input(path).exists())

    @contextmanager
    def spoilt(self, path: str, spoil: Callable[[bytes], bytes | None]) -> Iterator[None]:
        before = self.read(path)
        after = spoil(before)
        if after is None:
            self.delete(path)
        else:
            self.write(path, after)
        yield
        self.write(path, before)

    def add_foreign(self, file_format: FileFormat = FileFormat.PARQUET) -> str:
        table = table_of(self.stack, self.config, self.bad)
        like = next(iter(self.files(self.bad).values()))
        path = f"{like.file_path.rpartition('/')[0]}/others.{file_format.value.lower()}"
        with pq.ParquetFile(io.BytesIO(self.read(like.file_path))) as old:
            rows = old.read()
        nulls = [pa.nulls(rows.num_rows, field.type) for field in rows.schema]
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(nulls, schema=rows.schema.remove_metadata()), sink)
        self.write(path, sink.getvalue())
        file = DataFile.from_args(
            content=like.content,
            file_path=path,
            file_format=file_format,
            partition=Record(*(like.partition[index] for index in range(len(like.partition)))),
            record_count=rows.num_rows,
            file_size_in_bytes=len(sink.getvalue()),
        )
        file.spec_id = like.spec_id
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as producer:
            producer.append_data_file(file)
        return path

    def delete_position(self, path: str, position: int) -> str:
        table = table_of(self.stack, self.config, self.bad)
        (data,) = [file for file in self.files(self.bad).values() if file.file_path == path]
        deletes = f"{path.rpartition('/')[0]}/deletes.parquet"
        sink = io.BytesIO()
        pq.write_table(pa.table({"file_path": [path], "pos": pa.array([position], pa.int64())}), sink)
        self.write(deletes, sink.getvalue())
        partition = [data.partition[index] for index in range(len(data.partition))]
        file = position_deletes(deletes, partition, of=(path, path))
        file.spec_id = data.spec_id
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as producer:
            add_delete_files(producer, table, [file])
        return deletes

    def table_of(self, topic: str) -> str:
        return load_config(self.config).topic(topic).table


def cut_short(data: bytes) -> bytes:
    return data[: len(data) // 2]


def gone(_: bytes) -> None: ...


def of_other_records(data: bytes) -> bytes:
    with pq.ParquetFile(io.BytesIO(data)) as file:
        rows, about = file.read(), file.metadata.metadata
    changed = rows.to_pylist()
    for row in changed:
        row["val"]["__raw__"] += b"!"
    table = pa.Table.from_pylist(changed, rows.schema)
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({k: v for k, v in about.items() if k.startswith(b"archiver.")}), sink)
    return sink.getvalue()


def _of_day(day: int) -> Iterator[dict[str, Any]]:
    for number in range(EACH * PARTITIONS):
        yield {
            "key": b"k%d" % number,
            "value": b"v%d-%d" % (day, number),
            "partition": number % PARTITIONS,
            "timestamp": START + day * DAY + number,
        }


def _number(bound: bytes | None) -> int:
    return -1 if bound is None else int.from_bytes(bound, "little", signed=True)
