"""Tables that warehouses refuse."""

from __future__ import annotations

import pytest

from archiver.topics.engine_limits import exceeded_limits
from schema_mapping import LedgerState, MappingOptions, assign
from schema_mapping.protobuf.descriptors import SourceSchema
from tests.support.schemas.proto_text import compile_text


def fields(count: int, kind: str = "int32", prefix: str = "f") -> SourceSchema:
    lines = "".join(f"{kind} {prefix}{number} = {number};" for number in range(1, count + 1))
    return compile_text(f'syntax = "proto3"; package t; message M {{ {lines} }}')


def nested(levels: int, kind: str = "M{} m = 2;") -> SourceSchema:
    messages = [
        f"message M{level} {{ int32 a = 1; {kind.replace('{}', str(level + 1))} }}" for level in range(1, levels)
    ]
    messages.append(f"message M{levels} {{ int32 a = 1; }}")
    messages[0] = messages[0].replace("message M1 ", "message M ")
    imported = 'import "google/protobuf/duration.proto"; ' if "Duration" in kind else ""
    return compile_text(f'syntax = "proto3"; package t; {imported}' + " ".join(messages))


def limits(source: SourceSchema, **options: int) -> dict[str, tuple[int, int, str]]:
    assigned = assign(LedgerState(), value=source, options=MappingOptions(**options))  # type: ignore[arg-type]
    return {
        limit.engine: (limit.number, limit.limit, limit.setting) for limit in exceeded_limits(assigned.iceberg_schema)
    }


def test_sub_columns_of_snowflake() -> None:
    number, limit, setting = limits(fields(1_500))["Snowflake"]
    assert (number, limit) == (1_505, 1_000)
    assert "(archiver.column).exclude" in setting
    (exceeded,) = exceeded_limits(assign(LedgerState(), value=fields(1_500)).iceberg_schema)
    assert exceeded.text == (
        "Snowflake takes at most 1,000 sub-columns of a structured column, and `val` has 1,505. If Snowflake must read"
        " the table, set (archiver.column).exclude on fields in the .proto (for JSON: a schema with fewer members)"
        " before the first record is archived: columns stay in a table that has them. `max_columns` leaves out only"
        " messages inside the message, which has 1,505 columns without them; Avro has no setting for them"
    )
    assert limits(fields(995)) == {}
    assert limits(fields(996))["Snowflake"][0] == 1_001
    parts = "".join(f"M{part} m{part} = {part};" for part in range(1, 16))
    lines = "".join(f"int32 f{number} = {number};" for number in range(1, 101))
    inner = "".join(f"message M{part} {{ {lines} }}" for part in range(1, 16))
    several = compile_text(f'syntax = "proto3"; package t; message M {{ {parts} {inner} }}')
    assert limits(several)["Snowflake"] == (1_520, 1_000, "max_columns = 1000")
    assert limits(several, max_columns=1_000) == {}, "the setting that is advised suffices"


@pytest.mark.parametrize("kind", ["M{} m = 2;", "repeated M{} m = 2;"])
def test_levels_of_bigquery(kind: str) -> None:
    assert limits(nested(16, kind))["BigQuery"] == (16, 15, "max_depth = 14")
    assert limits(nested(15, kind)) == {}
    assert limits(nested(20, kind), max_depth=14) == {}, "the setting that is advised suffices"


def test_maps_are_records_in_bigquery() -> None:
    assert limits(nested(9, "map<string, M{}> m = 2;"))["BigQuery"] == (17, 15, "max_depth = 7")
    assert limits(nested(7, "map<string, M{}> m = 2;")) == {}


@pytest.mark.parametrize(
    ("count", "kind", "depth"),
    [
        (9, "map<string, M{}> m = 2;", 7),
        (14, "repeated M{} m = 2; map<string, M{}> n = 3;", 7),
        (16, "M{} m = 2; map<string, int32> n = 3; map<string, google.protobuf.Duration> o = 4;", 13),
        (16, "M{} m = 2; repeated google.protobuf.Duration n = 3;", 14),
    ],
)
def test_the_depth_that_is_advised_suffices(count: int, kind: str, depth: int) -> None:
    source = nested(count, kind)
    levels, _, setting = limits(source)["BigQuery"]
    assert levels > 15
    assert setting == f"max_depth = {depth}"
    assert limits(source, max_depth=depth) == {}
    assert limits(source, max_depth=depth + 1) != {}, "and is the greatest"


def test_the_columns_that_are_advised_for_glue_suffice() -> None:
    parts = "".join(f"M{part} a_part_{part} = {part};" for part in range(1, 20))
    short, long = (
        "".join(f"int32 {name}{number} = {number};" for number in range(1, 100)) for name in ("f", "f" * 200 + "_")
    )
    inner = "".join(f"message M{part} {{ {short if part < 10 else long} }}" for part in range(1, 20))
    source = compile_text(f'syntax = "proto3"; package t; message M {{ {parts} {inner} }}')
    number, limit, setting = limits(source)["AWS Glue"]
    assert number > limit
    name, _, columns = setting.partition(" = ")
    assert name == "max_columns"
    assert 500 < int(columns) < 1_000
    assert "AWS Glue" not in limits(source, max_columns=int(columns))


def test_types_of_glue() -> None:
    wide = fields(1_900, "int64", "a_long_name_of_a_field_as_generated_code_has_them_at_times_in_companies_")
    number, limit, setting = limits(wide)["AWS Glue"]
    assert number > limit == 131_072
    assert "(archiver.column).exclude" in setting
    assert "AWS Glue" not in limits(fields(1_900))


def test_the_text_has_number_limit_and_setting() -> None:
    assigned = assign(LedgerState(), value=nested(16))
    (limit,) = exceeded_limits(assigned.iceberg_schema)
    assert limit.text == (
        "BigQuery takes at most 15 levels of nested records, and `val` has 16. If BigQuery must read the table, set"
        " max_depth = 14 before the first record is archived: columns stay in a table that has them"
    )
