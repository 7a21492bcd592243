"""Extensions, renamed, excluded and removed columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import message_factory

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.errors import ReplayError
from schema_mapping.protobuf.descriptors import find_descriptor
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import compile_text
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

WORDS = ("select", "class", "_under", "Upper", "table")
PLAIN = """
  optional int32 id = 1;
  optional string secret = 2;
  repeated Line lines = 3;
  optional string going = 4;
  optional int32 select = 5;
  optional int32 class = 6;
  optional int32 _under = 7;
  optional int32 Upper = 8;
  optional int32 table = 9;
"""
CHOSEN = PLAIN.replace("id = 1;", 'id = 1 [(archiver.column).name = "number"];').replace(
    "secret = 2;", "secret = 2 [(archiver.column).exclude = true];"
)
REMOVED = CHOSEN.replace("optional string going = 4;", "")
SENT: dict[str, Any] = {"id": 7, "secret": "s", "lines": [{"price": 1}, {}], "going": "g", **dict.fromkeys(WORDS, 1)}


def text(fields: str) -> str:
    return f"""syntax = "proto2"; package t; import "archiver/options.proto";
        message M {{ {fields} extensions 100 to 200; }}
        message Line {{ optional int32 price = 1; extensions 10; }}
        extend M {{ optional string note = 100; }}
        extend Line {{ repeated int32 sizes = 10 [packed = true]; }}"""


def values(fields: str) -> list[bytes]:
    descriptor = find_descriptor(compile_text(text(PLAIN), extensions=("t.note", "t.sizes")))
    declared = find_descriptor(compile_text(text(fields))).fields_by_name
    message = message_factory.GetMessageClass(descriptor)(**{name: SENT[name] for name in SENT if name in declared})
    pool = descriptor.file.pool
    message.Extensions[pool.FindExtensionByName("t.note")] = "n"
    message.lines[1].Extensions[pool.FindExtensionByName("t.sizes")].extend([1, 200])
    return [message.SerializeToString(), b"", b"\xff", b"\x22\x01g\x08\x01"]


def test_columns_that_were_chosen(stack: Stack, engine: SparkEngine, tmp_path: Path) -> None:
    proto = tmp_path / "chosen.proto"
    topic = stack.topic()
    value = {"format": "protobuf", "message": "t.M", "proto": [str(proto)], "extensions": []}
    config = stack.config({topic: {"value": value, "keep_removed": False}})
    table = load_config(config).topic(topic).table
    columns = []
    for fields in (PLAIN, CHOSEN, REMOVED):
        proto.write_text(text(fields))
        stack.produce(topic, *({"value": value} for value in values(fields)))
        archive_once(config, topic, engine=InlineEngine())
        config.write_text(config.read_text().replace('"extensions" = []', '"extensions" = ["t.note", "t.sizes"]'))
        kind: Any = stack.catalog().load_table(table).schema().find_field("val").field_type
        columns.append([field.name for field in kind.fields if not field.name.startswith("__")])
        assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
    assert columns == [
        ["id", "secret", "lines", "going", *WORDS],
        ["number", "lines", "going", *WORDS, "note"],
        ["number", "lines", *WORDS, "note"],
    ]

    rows = rows_of_pyiceberg(stack, table)
    assert rows_of_spark(engine, table) == rows_of_duckdb(stack, table) == rows
    where = "val.class = 1 AND val._under = 1 AND val.Upper = 1"
    assert rows_of_spark(engine, table, where) == rows_of_pyiceberg(stack, table, where) == rows[::4]
    seen = [json.loads(row)["val"] for row in rows]
    assert [(row["number"], row["note"], row["__raw__"]) for row in seen[::4]] == [
        (7, None, None),
        *[(7, "n", None)] * 2,
    ]
    assert seen[4]["lines"] == [
        {"price": 1, "sizes": [], "__unrecognized__": None},
        {"price": None, "sizes": [1, 200], "__unrecognized__": None},
    ]
    assert [bytes.fromhex(row["__unrecognized__"]) for row in seen[::4]] == [
        b"\xa2\x06\x01n",
        b"\x12\x01s",
        b"\x12\x01s",
    ]

    engine.session.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    ).collect()
    assert rows_of_pyiceberg(stack, table) == rows
    with pytest.raises(ReplayError, match=r"val\.going"):
        from_archive(config, topic, 1)
