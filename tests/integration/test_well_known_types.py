"""Well-known types and unsigned longs as scalars."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from pyiceberg.table import Table

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.three_engines import duckdb_on, rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import descriptor_of
from tests.support.schemas.random_messages import random_message
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PROTO = """
syntax = "proto3"; package t;
import "google/protobuf/duration.proto"; import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
message M {
  google.protobuf.Timestamp at = 1; uint64 number = 2; google.protobuf.Struct attributes = 3;
  google.protobuf.Duration took = 4; google.protobuf.UInt64Value maybe = 5; google.protobuf.Value any = 6;
  repeated google.protobuf.Timestamp times = 7; map<uint64, google.protobuf.Timestamp> by_number = 8;
  google.protobuf.StringValue name = 9; N below = 10;
}
message N { google.protobuf.Timestamp at = 1; fixed64 number = 2; repeated google.protobuf.ListValue lists = 3; }
"""
STRUCTS = '\n[defaults]\nwell_known_types = "struct"\n'
NATIVE = '\n[defaults]\nwell_known_types = "native"\nuint64 = "decimal"\n'
YEAR = 31_556_952
YEAR_9972 = datetime(9972, 1, 1, tzinfo=UTC).timestamp()
RUNS = ("structs", "odd", "seventies", "far")
APART = ("seventies", "far")
BASES: Mapping[str, int] = {"structs": 0, "seventies": 0, "far": 2**63}
STARTS: Mapping[str, int] = {"structs": 0, "seventies": 0, "far": 8_000 * YEAR}
RECORDS = 40

FILTERS = {
    "a time in one file": (
        "val.at >= '1971-01-01T00:00:00+00:00' and val.at < '1971-02-01T00:00:00+00:00'",
        "val.at >= TIMESTAMP '1971-01-01T00:00:00Z' AND val.at < TIMESTAMP '1971-02-01T00:00:00Z'",
        "val.at >= TIMESTAMPTZ '1971-01-01 00:00:00+00' AND val.at < TIMESTAMPTZ '1971-02-01 00:00:00+00'",
    ),
    "a time below": (
        "val.below.at > '9972-01-01T00:00:00+00:00'",
        "val.below.at > TIMESTAMP '9972-01-01T00:00:00Z'",
        "val.below.at > TIMESTAMPTZ '9972-01-01 00:00:00+00'",
    ),
    "a decimal": ("val.number = 9223372036854775813",) * 3,
    "small decimals": ("val.number < 3",) * 3,
    "a decimal below": ("val.below.number >= 9223372036854775840",) * 3,
    "a wrapped decimal": ("val.maybe = 18446744073709551615",) * 3,
    "a duration": ("val.took = 5000001",) * 3,
    "a name": ("val.name = ''",) * 3,
}
IN_ONE_FILE = ("a time in one file", "a time below", "a decimal", "small decimals", "a decimal below")


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    config: Path
    topic: str
    name: str

    def table(self, stack: Stack) -> Table:
        return stack.catalog().load_table(self.name)


@pytest.fixture(params=["as written", "rewritten"], scope="module")
def archive(
    request: pytest.FixtureRequest, stack: Stack, engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory
) -> Archive:
    proto = tmp_path_factory.mktemp("well_known") / "m.proto"
    proto.write_text(PROTO)
    topic = stack.topic(1)
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "t.M", "proto": str(proto)}}})
    config.write_text(config.read_text() + STRUCTS)
    for run in RUNS:
        if run == "odd":
            config.write_text(config.read_text().replace(STRUCTS, NATIVE))
        stack.produce(topic, *({"key": run, "value": value} for value in values(run)))
        archive_once(config, topic, engine=InlineEngine())
    name = load_config(config).topic(topic).table
    if request.param == "rewritten":
        engine.session.sql(
            f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
        ).collect()
    return Archive(config=config, topic=topic, name=name)


def values(run: str) -> list[bytes | None]:
    descriptor = descriptor_of(PROTO)
    if run == "odd":
        random = (random_message(seed, descriptor, 100) for seed in range(RECORDS))
        return [None, b"", b"\xff", b"\x0a\x02\x10\x01", *(sample.SerializeToString() for sample in random)]
    made = GetMessageClass(descriptor)
    encoded: list[bytes | None] = []
    for index in range(RECORDS):
        at = {"seconds": STARTS[run] + index * YEAR // 10, "nanos": 1_000 * index}
        number = BASES[run] + index
        message = made(
            at=at,
            number=number,
            attributes={"n": index, "run": run, "deep": {"list": [None, 0.1, "x\n"]}},
            took={"seconds": index, "nanos": 1_000},
            maybe={"value": 2**64 - 1 if index == 7 else index} if index % 2 else None,
            any={"number_value": index / 7},
            times=[at, {}],
            by_number={number: at},
            name={"value": "" if index == 3 else "n"} if index else None,
            below={"at": at, "number": number, "lists": [[True, {"a": []}]]},
        )
        encoded.append(message.SerializeToString())
    return encoded


def test_columns(stack: Stack, archive: Archive) -> None:
    struct = archive.table(stack).schema().find_type("val")
    types = {field.name: str(field.field_type) for field in struct.fields if "deleted" not in field.name}
    assert types["at"] == "timestamptz"
    assert types["number"] == types["maybe"] == "decimal(20, 0)"
    assert types["attributes"] == types["any"] == types["name"] == "string"
    assert types["took"] == "long"
    assert types["times"] == "list<timestamptz>"
    assert types["by_number"] == "map<decimal(20, 0), timestamptz>"
    retired = {field.name.partition("_deleted_")[0] for field in struct.fields if "_deleted_" in field.name}
    assert retired == {"at", "number", "attributes", "took", "maybe", "any", "times", "by_number", "name"}


def test_engines_read_equal_rows(stack: Stack, engine: SparkEngine, archive: Archive) -> None:
    rows = rows_of_pyiceberg(stack, archive.name)
    for results in (rows_of_spark(engine, archive.name), rows_of_duckdb(stack, archive.name)):
        for expected, actual in zip(rows, results, strict=True):
            assert without_empty(json.loads(expected)) == without_empty(json.loads(actual))
    shown = [json.loads(row) for row in rows]
    native = [row["val"] for row in shown if bytes.fromhex(row["key"]["__raw__"]).decode() in APART]
    assert len(native) == 2 * RECORDS
    assert [value["__raw__"] for value in native] == [None] * len(native)
    assert native[-1]["number"] == str(2**63 + RECORDS - 1)
    assert json.loads(native[5]["attributes"]) == {
        "n": 5,
        "run": "seventies",
        "deep": {"list": [None, 0.1, "x\n"]},
    }
    assert native[5]["by_number"] == [["5", native[5]["at"]]]


def without_empty(value: Any) -> Any:
    # pyiceberg 0.12 shows a null list or map as an empty one once a file holds it.
    if isinstance(value, dict):
        return {name: without_empty(item) for name, item in value.items()}
    return None if value == [] else value


@pytest.mark.parametrize("name", FILTERS)
def test_engines_find_rows_by_a_filter(stack: Stack, engine: SparkEngine, archive: Archive, name: str) -> None:
    by_pyiceberg, by_spark, by_duckdb = FILTERS[name]
    expected = [row for row in rows_of_pyiceberg(stack, archive.name) if wanted(name, json.loads(row)["val"])]
    assert 0 < len(expected) < RECORDS
    results = (
        rows_of_pyiceberg(stack, archive.name, by_pyiceberg),
        rows_of_spark(engine, archive.name, by_spark),
        rows_of_duckdb(stack, archive.name, by_duckdb),
    )
    for rows in results:
        assert [json.loads(row)["kafka"] for row in rows] == [json.loads(row)["kafka"] for row in expected]


def wanted(name: str, value: dict[str, Any] | None) -> bool:  # noqa: PLR0911 - one return for each filter
    if value is None or value["__err__"] is not None:
        return False
    at, number, below = value["at"], value["number"], value["below"] or {}
    match name:
        case "a time in one file":
            return at is not None and 365 * 86_400 <= at < 396 * 86_400
        case "a time below":
            return below.get("at") is not None and below["at"] > YEAR_9972
        case "a decimal":
            return number is not None and Decimal(number) == 2**63 + 5
        case "small decimals":
            return number is not None and Decimal(number) < 3
        case "a decimal below":
            return below.get("number") is not None and Decimal(below["number"]) >= 2**63 + 32
        case "a wrapped decimal":
            return value["maybe"] is not None and Decimal(value["maybe"]) == 2**64 - 1
        case "a duration":
            return bool(value["took"] == 5_000_001)
    return bool(value["name"] == "")


@pytest.mark.parametrize("name", IN_ONE_FILE)
def test_bounds_leave_one_of_two_files_to_read(stack: Stack, archive: Archive, name: str) -> None:
    first, second = (planned(archive.table(stack), run) for run in APART)
    files = planned(archive.table(stack), "far", FILTERS[name][0])
    assert len(first) + 1 == len(second) == len(RUNS)
    assert len(files & (second - planned(archive.table(stack), "odd"))) == 1


def planned(table: Table, run: str, where: str = "true") -> set[str]:
    snapshot = table.snapshots()[RUNS.index(run)].snapshot_id
    return {file.file.file_path for file in table.scan(row_filter=where, snapshot_id=snapshot).plan_files()}


def test_engines_look_into_json(stack: Stack, engine: SparkEngine, archive: Archive) -> None:
    query = f"SELECT count(*) AS found FROM lake.{archive.name} WHERE "
    by_spark = engine.session.sql(f"{query} get_json_object(val.attributes, '$.deep.list[1]') = '0.1'").toArrow()
    assert by_spark["found"].to_pylist() == [2 * RECORDS]
    with duckdb_on(stack) as connection:
        counted = connection.sql(f"{query} val.attributes->>'$.deep.list[1]' = '0.1'").fetchall()
    assert counted == [(2 * RECORDS,)]


def test_every_byte_comes_back(stack: Stack, archive: Archive) -> None:
    assert from_archive(archive.config, archive.topic, 1) == from_kafka(stack, archive.topic, 1)


def ticks() -> list[bytes]:
    made = GetMessageClass(descriptor_of(PROTO))
    times = [{"seconds": index, "nanos": 123_456_000 + index} for index in range(RECORDS)]
    return [
        made(
            at=at, times=times[:index], by_number={index: at} if index % 2 else {}, below={"at": at}
        ).SerializeToString()
        for index, at in enumerate(times)
    ]


def test_nanoseconds_of_new_tables(stack: Stack, engine: SparkEngine, tmp_path: Path) -> None:
    proto, topic = tmp_path / "m.proto", stack.topic(1)
    proto.write_text(PROTO)
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "t.M", "proto": str(proto)}}})
    stack.produce(topic, *({"value": value} for value in ticks()))
    archive_once(config, topic, engine=InlineEngine())
    name = load_config(config).topic(topic).table
    struct = stack.catalog().load_table(name).schema().find_type("val")
    types = {field.name: str(field.field_type) for field in struct.fields}
    assert (types["at"], types["at_nanos"]) == ("timestamptz", "int")
    assert (types["times_nanos"], types["by_number_nanos"]) == ("list<int>", "list<int>")
    assert types["took"].startswith("struct<")
    for step in ("as written", "rewritten"):
        rows = [json.loads(row)["val"] for row in rows_of_pyiceberg(stack, name)]
        assert [row["at_nanos"] for row in rows] == [row["below"]["at_nanos"] for row in rows] == list(range(RECORDS))
        assert rows[3]["times_nanos"] == [0, 1, 2], step
        assert rows[3]["by_number_nanos"] == [3]
        assert [row["__raw__"] for row in rows] == [None] * RECORDS
        for condition in ("true", "val.at_nanos = 7", "val.below.at_nanos < 3"):
            chosen = rows_of_pyiceberg(stack, name, condition)
            for rows_read in (rows_of_spark(engine, name, condition), rows_of_duckdb(stack, name, condition)):
                for row, read in zip(chosen, rows_read, strict=True):
                    assert without_empty(json.loads(row)) == without_empty(json.loads(read))
        with duckdb_on(stack) as connection:
            exact = f"SELECT epoch_us(val.at) * 1000 + val.at_nanos FROM lake.{name} ORDER BY 1"
            assert [row[0] for row in connection.sql(exact).fetchall()] == [
                index * 10**9 + 123_456_000 + index for index in range(RECORDS)
            ]
        assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
        engine.session.sql(
            f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
        ).collect()
