"""Single schema changes: merged files, another value type, keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import message_factory

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.three_engines import rows_of_pyiceberg
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.evolution_runs import PARTITIONS, RUNS, run, start, three_readings, without_ids
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

ONE_TYPE_AFTER_THE_OTHER = """
syntax = "proto3"; package t;
message Before { int32 a = 1; string b = 2; }
message After { int64 a = 1; repeated string b = 2; bytes c = 3; }
"""
OF_STRUCTS = ("purses", "others")


def test_spark_may_rewrite_the_halves_into_one(stack: Stack, engine: SparkEngine, tmp_path: Path) -> None:
    config, topic, proto = start(stack, tmp_path)
    for number in range(len(RUNS)):
        run(stack, config, topic, proto, number=number)
    table = load_config(config).topic(topic).table
    before = rows_of_pyiceberg(stack, table)
    engine.session.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    ).collect()
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)
    for name, reading in three_readings(stack, engine, table).items():
        # pyiceberg 0.12 shows a null list or map of structs as an empty one, now that the file holds it.
        seen = as_pyiceberg_shows if name == "pyiceberg" else without_ids
        for old, new in zip(before, reading, strict=True):
            assert seen(json.loads(old)) == seen(json.loads(new))


def as_pyiceberg_shows(value: Any) -> Any:
    match value:
        case dict():
            return {
                name: [] if name in OF_STRUCTS and item is None else as_pyiceberg_shows(item)
                for name, item in value.items()
            }
        case list():
            return [as_pyiceberg_shows(item) for item in value]
        case _:
            return value


def test_another_type_for_the_whole_value(stack: Stack, engine: SparkEngine, tmp_path: Path) -> None:
    proto = tmp_path / "types.proto"
    proto.write_text(ONE_TYPE_AFTER_THE_OTHER)
    topic = stack.topic()
    before = message_factory.GetMessageClass(descriptor_of(ONE_TYPE_AFTER_THE_OTHER, "t.Before"))
    after = message_factory.GetMessageClass(descriptor_of(ONE_TYPE_AFTER_THE_OTHER, "t.After"))
    values = (b"1", before(a=-1, b="b").SerializeToString(), after(a=2, b=["b"], c=b"c").SerializeToString(), b"4")
    config = stack.config({topic: {"value": {"format": "raw"}}})
    typed = [f'protobuf", "message" = "t.{name}", "proto" = "{proto}' for name in ("Before", "After")]
    formats = ["raw", *typed, "raw"]
    for before_it, format_, value in zip(["raw", *formats], formats, values, strict=False):
        config.write_text(config.read_text().replace(f'"format" = "{before_it}"', f'"format" = "{format_}"'))
        stack.produce(topic, {"value": value}, {"value": b"\xff"}, {"value": None})
        archive_once(config, topic, engine=InlineEngine(), accept_raw=True)

    readings = three_readings(stack, engine, load_config(config).topic(topic).table)
    assert readings == dict.fromkeys(readings, readings["pyiceberg"])
    rows = [without_ids(json.loads(row)["val"]) for row in readings["pyiceberg"]]
    nothing = dict.fromkeys(
        ("a", "b", "b_deleted_N", "c", "__raw__", "__err__", "__form__", "__prefix__", "__unrecognized__")
    )
    assert rows[0::3] == [
        nothing | {"__raw__": b"1".hex()},
        nothing | {"a": -1, "b_deleted_N": "b"},
        nothing | {"a": 2, "b": ["b"], "c": b"c".hex()},
        nothing | {"__raw__": b"4".hex()},
    ]
    assert [row["__raw__"] for row in rows[1::3]] == ["ff"] * 4
    assert rows[2::3] == [None] * 4
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_keys_change_as_values_do(stack: Stack, engine: SparkEngine, tmp_path: Path) -> None:
    proto = tmp_path / "key.proto"
    topic = stack.topic()
    config = stack.config({topic: {"key": {"format": "protobuf", "message": "t.M", "proto": str(proto)}}})
    halves = (("int32 id = 1; string zone = 2;", {"id": 1, "zone": "z"}), ("int64 id = 1; bytes zone = 2;", {"id": 2}))
    for fields, sent in halves:
        proto.write_text(f'syntax = "proto3"; package t; message M {{ {fields} }}')
        key = message_factory.GetMessageClass(descriptor_of(proto.read_text()))(**sent).SerializeToString()
        stack.produce(topic, {"key": key, "value": b"v"}, {"key": b"\xff", "value": None}, {"value": b""})
        archive_once(config, topic, engine=InlineEngine(), accept_raw=True)

    readings = three_readings(stack, engine, load_config(config).topic(topic).table)
    assert readings == dict.fromkeys(readings, readings["pyiceberg"])
    keys = [without_ids(json.loads(row)["key"]) for row in readings["pyiceberg"]]
    assert [keys[2], keys[5]] == [None, None]
    assert [(key["id"], key["zone_deleted_N"], key["zone"], key["__raw__"]) for key in (*keys[:2], *keys[3:5])] == [
        (1, "z", None, b"\x08\x01\x12\x01z".hex()),
        (None, None, None, "ff"),
        (2, None, "", b"\x08\x02".hex()),
        (None, None, None, "ff"),
    ]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
