"""Four runs: first schema, changed, changed back, and first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor

from archiver.engine.spark import SparkEngine
from tests.support.archive.job_runs import archive_once
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.evolution_cases import CASES, TYPES_AFTER, TYPES_BEFORE
from tests.support.schemas.proto_text import descriptor_of
from tests.support.schemas.random_messages import random_message
from tests.support.servers.stack import Stack

PARTITIONS = 2
RUNS = ("first", "changed", "back", "first again")
OLD_PRODUCER = "old producer"
STILL_SENT = {"removed": 5}
RANDOM_RECORDS = 15


def start(stack: Stack, folder: Path) -> tuple[Path, str, Path]:
    proto = folder / "matrix.proto"
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "t.M", "proto": str(proto)}}})
    return config, topic, proto


def run(stack: Stack, config: Path, topic: str, proto: Path, *, number: int) -> None:
    proto.write_text(schema_text(number))
    descriptor = descriptor_of(schema_text(number))
    side = 1 if RUNS[number] == "changed" else 0
    values: list[tuple[str, bytes | None]] = [
        (
            RUNS[number],
            everywhere(descriptor, {name: value for case in CASES for name, value in case.sent[side].items()}),
        ),
        ("nothing set", b""),
        ("garbage", b"\xff\xff"),
        ("tombstone", None),
        *(
            (
                "random",
                random_message(100 * number + seed, descriptor, 200).SerializeToString(deterministic=seed % 3 > 0),
            )
            for seed in range(RANDOM_RECORDS)
        ),
    ]
    if side:
        values.append((OLD_PRODUCER, everywhere(descriptor_of(schema_text(0)), STILL_SENT)))
    messages = (
        {"key": key, "value": value, "partition": index % PARTITIONS, "timestamp": 1_700_000_000_000 + index}
        for index, (key, value) in enumerate(values)
    )
    stack.produce(topic, *messages)
    archive_once(config, topic, engine=InlineEngine())


def schema_text(number: int) -> str:
    side = 1 if RUNS[number] == "changed" else 0
    body = " ".join(case.fields[side] for case in CASES)
    if RUNS[number] == "back":
        body += " int32 marker = 99;"
    return (
        f'syntax = "proto3"; package t; {TYPES_AFTER if side else TYPES_BEFORE}\n'
        f"message Inner {{ {body} }}\n"
        f"message M {{ {body} Inner one = 101; repeated Inner many = 102; map<string, Inner> by_name = 103; }}\n"
    )


def everywhere(descriptor: Descriptor, values: Mapping[str, Any]) -> bytes:
    message = message_factory.GetMessageClass(descriptor)(**values, one=values, many=[values], by_name={"name": values})
    encoded: bytes = message.SerializeToString()
    return encoded


def three_readings(stack: Stack, engine: SparkEngine, table: str) -> dict[str, list[str]]:
    return {
        "pyiceberg": rows_of_pyiceberg(stack, table),
        "spark": rows_of_spark(engine, table),
        "duckdb": rows_of_duckdb(stack, table),
    }


def without_ids(value: Any) -> Any:
    match value:
        case dict():
            return {re.sub(r"_deleted_\d+$", "_deleted_N", name): without_ids(item) for name, item in value.items()}
        case list():
            return [without_ids(item) for item in value]
        case _:
            return value
