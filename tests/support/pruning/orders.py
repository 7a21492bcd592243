"""A topic of files with several row groups."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf import message_factory
from pyiceberg.table import Table

from archiver.config import load_config
from archiver.schemas.protobuf.schema_files import compile_proto
from archiver.storage.parquet import writer
from schema_mapping.protobuf.descriptors import find_descriptor
from tests.support.archive.job_runs import archive_once
from tests.support.engine.inline_engine import InlineEngine
from tests.support.pruning.layout import DataFile, Touched, layout_of
from tests.support.pruning.questions import Needed, Question, Term, needed
from tests.support.servers.stack import Stack

PARTITIONS: Final = 2
MONTHS: Final = (1_704_067_200_000, 1_706_745_600_000, 1_709_251_200_000)
BATCH: Final = 100
ROWS: Final = 32_000
"""Records of each partition in each month."""
GROUP_ROWS: Final = 9_000
STEP_MS: Final = 75_000
NOTE: Final = 900
"""Bytes that don't compress: files as large as these are read in parts."""
PROTO: Final = """
syntax = "proto3";
package shop;
message Customer { string id = 1; }
message Parcel { string code = 1; }
message Order { int64 id = 1; Customer customer = 2; Parcel parcel = 3; int64 cents = 4; bytes note = 5; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    table: str
    files: tuple[DataFile, ...]
    questions: Mapping[Question, Needed]

    @property
    def whole(self) -> Touched:
        return Touched(
            files=len(self.files),
            groups=sum(len(file.groups) for file in self.files),
            kilobytes=round(sum(file.size for file in self.files) / 1_000),
        )


def archived_orders(stack: Stack, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Orders:
    proto = folder / "order.proto"
    proto.write_text(PROTO)
    message = message_factory.GetMessageClass(find_descriptor(compile_proto(proto, "shop.Order")))
    topic = stack.topic(PARTITIONS)
    for month in range(len(MONTHS)):
        stack.produce(topic, *records(month, message), batch_num_messages=BATCH, linger_ms=2_000)
    config = stack.config(
        {
            topic: {
                "value": {"format": "protobuf", "message": "shop.Order", "proto": str(proto)},
                "partition_by": "month",
                "bloom_filters": ["val.customer.id", "key.__raw__"],
            }
        }
    )
    with monkeypatch.context() as patched:
        patched.setattr(writer, "GROUP_ROWS", GROUP_ROWS)
        archive_once(config, topic, engine=InlineEngine())
    name = load_config(config).topic(topic).table
    table = stack.catalog().load_table(name)
    groups = _groups(table)
    questions = _questions(groups[len(groups) // 2][2])
    return Orders(
        table=name,
        files=layout_of(table),
        questions={question: needed(question, groups) for question in questions},
    )


def records(month: int, message: type[Any]) -> Iterator[dict[str, Any]]:
    noise = random.Random(month)
    for partition in range(PARTITIONS):
        for number in range(ROWS):
            order = (month * ROWS + number) * PARTITIONS + partition
            value = message(
                id=order,
                customer={"id": f"c-{noise.getrandbits(64):016x}"},
                parcel={"code": f"P-{partition}-{month * ROWS + number:07d}"},
                cents=noise.randrange(100_000),
                note=noise.randbytes(NOTE),
            )
            yield {
                "key": noise.randbytes(12),
                "value": value.SerializeToString(),
                "partition": partition,
                "timestamp": MONTHS[month] + number * STEP_MS,
            }


def _groups(table: Table) -> list[list[pa.Table]]:
    result = []
    for path in sorted(task.file.file_path for task in table.scan().plan_files()):
        with table.io.new_input(path).open() as stream:
            file = pq.ParquetFile(stream)
            columns = ["kafka", "key", "val.customer", "val.parcel", "val.cents", "ingest_timestamp"]
            result.append([file.read_row_group(value, columns=columns) for value in range(file.num_row_groups)])
    return result


def _questions(group: pa.Table) -> Sequence[Question]:
    rows = group.to_pylist()
    row = rows[len(rows) // 2]
    position, value = row["kafka"], row["val"]
    since, until = (value["ingest_timestamp"] for value in (rows[len(rows) // 4], row))
    offset, key = position["offset"], row["key"]["__raw__"]
    customer, parcel = value["customer"]["id"], value["parcel"]["code"]
    requests = {
        "no filter": (),
        "`kafka.offset`": (Term(("kafka", "offset"), offset - 100, offset + 100),),
        "`kafka.partition`": (Term(("kafka", "partition"), 1, 1),),
        "`ingest_timestamp`": (Term(("ingest_timestamp",), since, until),),
        "`kafka.ingest_timestamp`": (Term(("kafka", "ingest_timestamp"), since, until),),
        "`val.parcel.code`, a string that grows": (Term(("val", "parcel", "code"), parcel, parcel),),
        "`val.customer.id`, a string in no order, with a bloom filter": (
            Term(("val", "customer", "id"), customer, customer),
        ),
        "`key.__raw__`, bytes in no order, with a bloom filter": (Term(("key", "__raw__"), key, key),),
    }
    return [Question(title=title, terms=terms) for title, terms in requests.items()]
