"""Every schema change, by replay and three engines.

One message has all changes; see `evolution_runs`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from schema_mapping import names
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.three_engines import duckdb_on, plain, rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.schemas.evolution_cases import CASES, Case
from tests.support.schemas.evolution_runs import (
    OLD_PRODUCER,
    PARTITIONS,
    RANDOM_RECORDS,
    RUNS,
    run,
    start,
    three_readings,
    without_ids,
)
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PLACES = ("itself", "one", "many", "by_name")
ALONE = ("one.another", "one.paid.bank", "by_name")
PROMOTED = (
    ("wide_deleted_N", "=", "-8"),
    ("one.wide_deleted_N", ">", "1099511627775"),
    ("precise_deleted_N", "<", "0.25"),
    ("natural_deleted_N", "=", "-1"),
)
STILL_SENT_BYTES = b"\x28\x05"


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    config: Path
    topic: str
    table: str
    types: StructType
    changed: Mapping[str, list[str]]
    at_the_end: Mapping[str, list[str]]


@pytest.fixture(scope="module")
def archive(stack: Stack, engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    config, topic, proto = start(stack, tmp_path_factory.mktemp("evolution"))
    table = load_config(config).topic(topic).table
    run(stack, config, topic, proto, number=0)
    run(stack, config, topic, proto, number=1)
    changed = three_readings(stack, engine, table)
    types = stack.catalog().load_table(table).schema().find_field("val").field_type
    assert isinstance(types, StructType)
    run(stack, config, topic, proto, number=2)
    run(stack, config, topic, proto, number=3)
    return Archive(
        config=config,
        topic=topic,
        table=table,
        types=types,
        changed=changed,
        at_the_end=three_readings(stack, engine, table),
    )


def found(rows: list[str], key: str, place: str) -> dict[str, Any]:
    (row,) = (row for row in map(json.loads, rows) if row["key"] == {"__raw__": key.encode().hex()})
    value = row["val"]
    match place:
        case "one":
            value = value["one"]
        case "many":
            (value,) = value["many"]
        case "by_name":
            ((_, value),) = value["by_name"]
    columns: dict[str, Any] = without_ids(value)
    return columns


def shown(columns: dict[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    return {name: columns[name] for name in expected}


def types_in(value: StructType, place: str) -> dict[str, str]:
    for field in value.fields:
        match field.name, field.field_type:
            case name, StructType() as kind if name == place:
                value = kind
            case name, ListType(element_type=StructType() as kind) if name == place:
                value = kind
            case name, MapType(value_type=StructType() as kind) if name == place:
                value = kind
    types: dict[str, str] = without_ids({field.name: type_text(field.field_type) for field in value.fields})
    return types


def type_text(kind: IcebergType) -> str:
    match kind:
        case StructType():
            return "struct"
        case ListType():
            return f"list<{type_text(kind.element_type)}>"
        case MapType():
            return f"map<{type_text(kind.key_type)}, {type_text(kind.value_type)}>"
        case _:
            return str(kind)


def ids_of(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", CASES, ids=ids_of)
def test_both_halves_of_a_change(archive: Archive, case: Case, place: str) -> None:
    rows = archive.changed["pyiceberg"]
    for index, name in enumerate(("first", "changed"), start=1):
        expected = {column: plain(values[index]) for column, values in case.after.items()}
        assert shown(found(rows, name, place), expected) == expected


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", CASES, ids=ids_of)
def test_after_the_way_back(archive: Archive, case: Case, place: str) -> None:
    rows = archive.at_the_end["pyiceberg"]
    for index, name in enumerate(RUNS):
        expected = {column: plain(values[index]) for column, values in case.at_the_end.items()}
        assert shown(found(rows, name, place), expected) == expected


@pytest.mark.parametrize("place", PLACES)
def test_columns_and_their_types(archive: Archive, place: str) -> None:
    expected = {name: values[0] for case in CASES for name, values in case.after.items()}
    added_by_us = names.RESERVED | set(PLACES) if place == "itself" else {names.UNRECOGNIZED}
    assert {name: text for name, text in types_in(archive.types, place).items() if name not in added_by_us} == expected


@pytest.mark.parametrize("place", PLACES)
def test_a_removed_field_that_is_still_sent(archive: Archive, place: str) -> None:
    columns = found(archive.changed["pyiceberg"], OLD_PRODUCER, place)
    assert (columns["removed"], columns["__unrecognized__"]) == (None, STILL_SENT_BYTES.hex())


@pytest.mark.parametrize("engine_name", ["spark", "duckdb"])
@pytest.mark.parametrize("moment", ["changed", "at_the_end"])
def test_engines_read_equal_rows(archive: Archive, moment: str, engine_name: str) -> None:
    readings = getattr(archive, moment)
    for expected, actual in zip(readings["pyiceberg"], readings[engine_name], strict=True):
        assert json.loads(expected) == json.loads(actual)


@pytest.mark.parametrize("name", RUNS)
def test_the_columns_are_the_only_copy(archive: Archive, name: str) -> None:
    assert found(archive.at_the_end["pyiceberg"], name, "itself")["__raw__"] is None


@pytest.mark.parametrize("condition", PROMOTED, ids=" ".join)
def test_engines_find_rows_by_a_promoted_column(
    stack: Stack, engine: SparkEngine, archive: Archive, condition: tuple[str, str, str]
) -> None:
    name, sign, number = condition
    rows = archive.at_the_end["pyiceberg"]
    column = real_name(rows, name)
    expected = [row for row in rows if holds(one_of(json.loads(row)["val"], column), sign, float(number))]
    assert 0 < len(expected) < len(rows)
    where = f"val.{column} {sign} {number}"
    found_by = {
        "pyiceberg": rows_of_pyiceberg(stack, archive.table, where),
        "spark": rows_of_spark(engine, archive.table, where),
        "duckdb": rows_of_duckdb(stack, archive.table, where),
    }
    assert found_by == dict.fromkeys(found_by, expected)


def test_engines_read_a_column_alone(stack: Stack, engine: SparkEngine, archive: Archive) -> None:
    rows = archive.at_the_end["pyiceberg"]
    with duckdb_on(stack) as connection:
        for name in ALONE:
            column = real_name(rows, name)
            query = f"SELECT val.{column} AS alone FROM lake.{archive.table} ORDER BY kafka.partition, kafka.offset"
            expected = [one_of(json.loads(row)["val"], column) for row in rows]
            by_spark = engine.session.sql(query).toArrow().column("alone").to_pylist()
            by_duckdb = connection.sql(query).to_arrow_table().column("alone").to_pylist()
            assert json.loads(json.dumps(plain(by_spark))) == expected, column
            assert json.loads(json.dumps(plain(by_duckdb))) == expected, column


def real_name(rows: list[str], name: str) -> str:
    value: Any = next(item for row in rows if (item := json.loads(row)["val"]) and item["one"])
    parts = []
    for part in name.split("."):
        (real,) = (item for item in value if without_ids({item: None}) == {part: None})
        parts.append(real)
        value = value[real]
    return ".".join(parts)


def one_of(value: Any, name: str) -> Any:
    for part in name.split("."):
        value = None if value is None else value[part]
    return value


def holds(value: Any, sign: str, number: float) -> bool:
    if value is None:
        return False
    value = float.fromhex(value) if isinstance(value, str) else value
    return bool({"=": value == number, "<": value < number, ">": value > number}[sign])


def test_a_change_comes_with_the_first_data_that_uses_it(stack: Stack, archive: Archive) -> None:
    table = stack.catalog().load_table(archive.table)
    schemas = [snapshot.schema_id for snapshot in table.snapshots()]
    assert len(schemas) == len(RUNS)
    assert len(set(schemas)) == len(RUNS) - 1
    assert schemas[-1] == schemas[-2] == table.schema().schema_id


def test_each_snapshot_shows_the_columns_of_its_time(stack: Stack, engine: SparkEngine, archive: Archive) -> None:
    table = stack.catalog().load_table(archive.table)
    columns = []
    for snapshot in table.snapshots():
        by_pyiceberg = table.scan(snapshot_id=snapshot.snapshot_id).projection().find_field("val").field_type
        assert isinstance(by_pyiceberg, StructType)
        query = f"SELECT val.* FROM lake.{archive.table} VERSION AS OF {snapshot.snapshot_id}"
        columns.append({field.name for field in by_pyiceberg.fields})
        assert set(engine.session.sql(query).columns) == columns[-1]
    assert ["old_name" in column for column in columns] == [True, False, True, True]
    assert ["added" in column for column in columns] == [False, True, True, True]


def test_every_metrics_property_names_a_column(stack: Stack, archive: Archive) -> None:
    table = stack.catalog().load_table(archive.table)
    prefix = "write.metadata.metrics.column."
    named = [name.removeprefix(prefix) for name in table.properties if name.startswith(prefix)]
    assert len(named) > 60
    assert not set(named) - set(table.schema().column_names)


def test_replay_is_exact(stack: Stack, archive: Archive) -> None:
    sent = from_kafka(stack, archive.topic, PARTITIONS)
    assert len(sent) == len(RUNS) * (RANDOM_RECORDS + 4) + 1
    assert from_archive(archive.config, archive.topic, PARTITIONS) == sent
