"""Whole statements, in each dialect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, ListType, LongType, NestedField, StringType, StructType

from archiver.errors import ConfigError
from archiver.views.catalog_view import check_reads_views
from archiver.views.choice import ColumnChoice
from archiver.views.dialects import Place, dialect_of, statement
from archiver.views.kinds import ByteForm, QueryEngine, Rows
from archiver.views.view import View, view_of
from tests.support.catalog.memory import KAFKA

CITY = StructType(NestedField(112, "city", StringType()), NestedField(113, "__unrecognized__", BinaryType()))
HEADER = StructType(NestedField(6, "key", StringType(), required=True), NestedField(7, "value", BinaryType()))
TABLE = ("my.shop", "orders")
SMALL = ColumnChoice(wanted=("key", "add*", 'odd`"*', "headers"), byte_form=ByteForm.HEX)


def schema(*fields: NestedField, number: int = 0) -> Schema:
    return Schema(
        NestedField(1, "key", StructType(NestedField(100, "__raw__", BinaryType()))),
        NestedField(2, "val", StructType(*fields)),
        NestedField(3, "headers", ListType(5, HEADER)),
        NestedField(4, "kafka", KAFKA),
        schema_id=number,
    )


TYPED = schema(
    NestedField(110, "address", CITY),
    NestedField(111, 'odd`"name', LongType()),
    NestedField(120, "__raw__", BinaryType()),
    NestedField(121, "__err__", StringType()),
    NestedField(122, "__unrecognized__", BinaryType()),
)
RAW = schema(NestedField(120, "__raw__", BinaryType()))


def view(*history: Schema, **options: Any) -> View:
    metadata = SimpleNamespace(schemas=list(history), schema=lambda: history[-1], properties=options.pop("table", {}))
    return view_of(TABLE, cast("Any", metadata), **options)


def printed(engine: QueryEngine, found: View, **place: Any) -> str:
    return statement(found, dialect_of(engine), Place(catalog="lake", name=place.pop("name", "v"), **place))


def names(found: View) -> list[str]:
    return [column.name for column in found.columns]


def test_spark() -> None:
    assert printed(QueryEngine.SPARK, view(TYPED, choice=SMALL)) == (
        "CREATE OR REPLACE VIEW `lake`.`my.shop`.`v` AS\n"
        "SELECT\n"
        "  hex(`record`.`key`.`__raw__`) AS `key`,\n"
        "  `record`.`val`.`address`.`city` AS `address_city`,\n"
        "  hex(`record`.`val`.`address`.`__unrecognized__`) AS `address_unrecognized`,\n"
        '  `record`.`val`.`odd``"name` AS `odd``"name`,\n'
        "  map_from_entries(transform(filter(`record`.`headers`, (h, i) -> NOT exists(slice(`record`.`headers`, i + 2,"
        " size(`record`.`headers`)), l -> l.key = h.key)), h -> struct(h.key, hex(h.value)))) AS `headers`\n"
        "FROM `lake`.`my.shop`.`orders` AS `record`"
    )


def test_trino() -> None:
    assert printed(QueryEngine.TRINO, view(TYPED, choice=SMALL), namespace=("a", "b")) == (
        'CREATE OR REPLACE VIEW "lake"."a.b"."v" SECURITY INVOKER AS\n'
        "SELECT\n"
        '  to_hex("record"."key"."__raw__") AS "key",\n'
        '  "record"."val"."address"."city" AS "address_city",\n'
        '  to_hex("record"."val"."address"."__unrecognized__") AS "address_unrecognized",\n'
        '  "record"."val"."odd`""name" AS "odd`""name",\n'
        '  transform_values(multimap_from_entries(transform("record"."headers", h -> ROW(h.key, to_hex(h.value)))),'
        ' (k, v) -> element_at(v, -1)) AS "headers"\n'
        'FROM "lake"."my.shop"."orders" AS "record"'
    )


def test_the_latest_of_each_key() -> None:
    query = view(TYPED, rows=Rows.LATEST, choice=ColumnChoice(wanted=("key", "address_city")))
    assert printed(QueryEngine.DUCKDB, query, temporary=True) == (
        'CREATE OR REPLACE TEMPORARY VIEW "v" AS\n'
        "SELECT\n"
        '  "key",\n'
        '  "address_city"\n'
        "FROM (\n"
        "  SELECT\n"
        '    "record"."key"."__raw__" AS "key",\n'
        '    "record"."val"."address"."city" AS "address_city",\n'
        '    "record"."val" IS NULL AS "__deleted__",\n'
        '    row_number() OVER (PARTITION BY "record"."kafka"."partition", "record"."key"."__raw__"'
        ' ORDER BY "record"."kafka"."offset" DESC) AS "__age__"\n'
        '  FROM "lake"."my.shop"."orders" AS "record"\n'
        '  WHERE "record"."key"."__raw__" IS NOT NULL\n'
        ") AS latest\n"
        'WHERE "__age__" = 1 AND NOT "__deleted__"'
    )


def test_errors_are_rows_with_a_reason_or_with_their_bytes() -> None:
    query = view(TYPED, rows=Rows.ERRORS)
    expected = 'WHERE "record"."val"."__err__" IS NOT NULL OR "record"."val"."__raw__" IS NOT NULL'
    assert printed(QueryEngine.TRINO, query).endswith(expected)
    assert names(query)[:4] == ["key", "value", "value_error", "headers"]
    with pytest.raises(ConfigError, match="no schema"):
        view(RAW, rows=Rows.ERRORS)


def test_errors_of_a_key_with_a_schema_count_its_bytes_dont() -> None:
    key = StructType(
        NestedField(100, "__raw__", BinaryType()),
        NestedField(130, "__err__", StringType()),
        NestedField(131, "id", LongType()),
    )
    typed = Schema(NestedField(1, "key", key), *RAW.fields[1:])
    query = view(typed, rows=Rows.ERRORS)
    assert printed(QueryEngine.SPARK, query).endswith("WHERE `record`.`key`.`__err__` IS NOT NULL")
    assert names(query)[:4] == ["key", "key_error", "value", "headers"]
    assert names(view(typed))[:4] == ["key", "key_error", "key_id", "value"]


def test_a_column_that_a_view_once_had_it_keeps() -> None:
    assert "value" in names(view(RAW))
    assert "value" not in names(view(TYPED))
    later = schema(*TYPED.find_type("val").fields, number=1)
    assert "value" in names(view(RAW, later))
    assert "value" not in names(view(RAW, later, by_present_names=True))


def test_unrelated_schema_of_the_creation_names_nothing() -> None:
    """Catalogs may keep one that a client proposed; its 111 is another column."""
    stray = Schema(NestedField(1, "key", StructType(NestedField(111, "stray", LongType()))), schema_id=0)
    query = view(stray, schema(NestedField(111, "plain", LongType()), number=1))
    assert "plain" in names(query)


def test_structs_stay_below_the_depth() -> None:
    query = view(TYPED, choice=ColumnChoice(depth=0))
    assert {column.name: column.type for column in query.columns}["address"] == CITY
    assert "address_city" in names(view(TYPED, choice=ColumnChoice(depth=1)))


def test_the_archivers_own_columns_if_asked() -> None:
    own = {"value", "value_unrecognized", "address_unrecognized"}
    assert not own & set(names(view(TYPED)))
    assert own <= set(names(view(TYPED, choice=ColumnChoice(technical=True))))


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (ColumnChoice(wanted=("nothing*",)), "--columns.*nothing"),
        (ColumnChoice(excluded=("nothing",)), "--exclude.*nothing"),
        (ColumnChoice(excluded=("*",)), "no column is left"),
    ],
)
def test_a_choice_of_nothing_is_refused(choice: ColumnChoice, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        view(TYPED, choice=choice)


def test_patterns_choose_and_leave_out() -> None:
    query = view(TYPED, choice=ColumnChoice(wanted=("KEY", "kafka_*"), excluded=("kafka_*timestamp",)))
    assert names(query) == ["key", "kafka_partition", "kafka_offset", "kafka_batch_start"]


def test_what_an_engine_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match="temporary"):
        printed(QueryEngine.TRINO, view(TYPED), temporary=True)
    with pytest.raises(ConfigError, match="register"):
        check_reads_views(QueryEngine.DUCKDB)


def test_clickhouse_tests_every_member_of_a_null_struct() -> None:
    query = view(TYPED, choice=ColumnChoice(wanted=("address_city", 'odd`"name', "tombstone")))
    assert printed(QueryEngine.CLICKHOUSE, query) == (
        "CREATE OR REPLACE VIEW `v` AS\n"
        "SELECT\n"
        "  identity(`record`.`val`).`address`.`city` AS `address_city`,\n"
        '  identity(`record`.`val`).`odd\\`"name` AS `odd\\`"name`,\n'
        "  CAST(identity(`record`.`val`).`address`.`city` IS NULL"
        " AND identity(`record`.`val`).`address`.`__unrecognized__` IS NULL"
        ' AND identity(`record`.`val`).`odd\\`"name` IS NULL'
        " AND identity(`record`.`val`).`__raw__` IS NULL"
        " AND identity(`record`.`val`).`__err__` IS NULL"
        " AND identity(`record`.`val`).`__unrecognized__` IS NULL AS Bool) AS `tombstone`\n"
        "FROM `lake`.`my.shop.orders` AS `record`"
    )


def test_athena_has_no_times_with_a_zone() -> None:
    query = view(TYPED, choice=ColumnChoice(wanted=("kafka_event_timestamp",)))
    assert statement(query, dialect_of(QueryEngine.ATHENA), Place(catalog="awsdatacatalog", name="v")) == (
        'CREATE OR REPLACE VIEW "my.shop"."v" AS\n'
        "SELECT\n"
        '  CAST("record"."kafka"."event_timestamp" AT TIME ZONE \'UTC\' AS timestamp(6)) AS "kafka_event_timestamp"\n'
        'FROM "awsdatacatalog"."my.shop"."orders" AS "record"'
    )


def test_latest_record_is_independent_of_field_names() -> None:
    fields = [NestedField(130, "__age__", LongType()), NestedField(131, "__Deleted__", LongType())]
    query = view(schema(*fields), rows=Rows.LATEST, choice=ColumnChoice(wanted=("__age__", "__deleted__")))
    connection = duckdb.connect()
    connection.execute("ATTACH ':memory:' AS lake")
    connection.execute('CREATE SCHEMA lake."my.shop"')
    connection.execute(
        'CREATE TABLE lake."my.shop".orders AS SELECT'
        " {'__raw__': k::BLOB} AS key, {'__age__': age, '__Deleted__': 1} AS val,"
        " {'partition': 0, 'offset': o} AS kafka"
        " FROM (VALUES (1, 'a', 7), (2, 'a', 1), (3, 'b', 1), (4, 'b', 9)) AS record(o, k, age)"
    )
    connection.execute(printed(QueryEngine.DUCKDB, query, temporary=True))
    assert sorted(connection.execute("SELECT * FROM v").fetchall()) == [(1, 1), (9, 1)]


OLD = NestedField(110, "total", LongType())
NEW = (NestedField(110, "total_deleted_110", LongType()), NestedField(111, "total", StringType()))
CASTABLE = {"archiver.superseded-columns": '{"110":{"by":111,"castable":true}}'}
LOSSY = {"archiver.superseded-columns": '{"110":{"by":111,"castable":false}}'}


def fields_of(found: View) -> dict[str, str | None]:
    return {column.name: column.doc for column in found.columns if "total" in column.name}


def test_new_view_has_one_column_for_a_changed_type() -> None:
    changed = view(schema(OLD), schema(*NEW, number=1), table=CASTABLE)
    assert fields_of(changed) == {"total": "val.total (with the older values of val.total_deleted_110)"}
    casts = {
        QueryEngine.SPARK: "coalesce(`record`.`val`.`total`,"
        " CAST(`record`.`val`.`total_deleted_110` AS STRING)) AS `total`",
        QueryEngine.TRINO: 'CAST("record"."val"."total_deleted_110" AS varchar)) AS "total"',
        QueryEngine.CLICKHOUSE: "AS Nullable(String))) AS `total`",
    }
    for engine, sql in casts.items():
        assert sql in printed(engine, changed)
    rows = [(7, None), (None, "8.50"), (None, None)]
    duckdb.execute("CREATE OR REPLACE TABLE changed (val STRUCT(total_deleted_110 BIGINT, total VARCHAR))")
    duckdb.executemany("INSERT INTO changed VALUES ({'total_deleted_110': ?, 'total': ?})", rows)
    sql = printed(
        QueryEngine.DUCKDB,
        view(schema(OLD), schema(*NEW, number=1), table=CASTABLE, choice=ColumnChoice(wanted=("total",))),
    )
    query = sql.partition(" AS\n")[2].replace('"lake"."my.shop"."orders"', "changed")
    assert duckdb.execute(query).fetchall() == [("7",), ("8.50",), (None,)]


def test_values_that_do_not_fit_get_two_columns_with_comments() -> None:
    changed = view(schema(OLD), schema(*NEW, number=1), table=LOSSY)
    assert fields_of(changed) == {
        "total": "val.total_deleted_110 (rows from before its type changed; newer rows: val_total)",
        "val_total": "val.total (rows since its type changed; older rows: total)",
    }


def test_existing_view_merges_only_on_request() -> None:
    history = (schema(OLD), schema(*NEW, number=1))
    before = view(schema(OLD))
    kept = view(*history, table=CASTABLE, given=before.names)
    assert list(fields_of(kept)) == ["total", "val_total"]
    assert list(fields_of(view(*history, table=CASTABLE, given=kept.names))) == ["total", "val_total"]
    merged = view(*history, table=CASTABLE, given=kept.names, merge_changed=True)
    assert list(fields_of(merged)) == ["total"]
    assert list(fields_of(view(*history, table=CASTABLE, given=merged.names))) == ["total"]


def test_merged_view_survives_the_next_change_of_type() -> None:
    history = (schema(OLD), schema(*NEW, number=1))
    merged = view(*history, table=CASTABLE)
    third = schema(
        NEW[0], NestedField(111, "total_deleted_111", StringType()), NestedField(112, "total", BinaryType()), number=2
    )
    table = {"archiver.superseded-columns": '{"110":{"by":112,"castable":false},"111":{"by":112,"castable":false}}'}
    changed = view(*history, third, table=table, given=merged.names)
    assert list(fields_of(changed)) == ["total", "val_total"]
