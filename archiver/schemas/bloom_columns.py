"""Columns of `bloom_filters` by field ids, which renames don't change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, DoubleType, FloatType, IntegerType, NestedField

from archiver.config.model import TopicConfig
from archiver.errors import ConfigError
from schema_mapping.columns.iceberg import iceberg_field
from schema_mapping.field_ids import Assignment
from schema_mapping.row import row_mapping_from_text

_SHOWN: Final = 3


def bloom_columns(config: TopicConfig, assignment: Assignment, table: Schema | None) -> dict[int, float] | None:
    """None: left to the table. Raises ConfigError for an unknown column or a useless filter.

    Paths are looked up in the newest version, `table` and earlier versions.
    """
    if config.bloom_filters is None:
        return None
    return {_column(path, config, assignment, table): config.bloom_filter_fpp for path in config.bloom_filters}


def _column(path: str, config: TopicConfig, assignment: Assignment, table: Schema | None) -> int:
    for schema in known_schemas(assignment, table):
        with suppress(ValueError):
            field = schema.find_field(path)
            if (problem := _problem(field, schema)) is not None:
                raise _refused(path, problem, config)
            return field.field_id
    near = get_close_matches(path, assignment.iceberg_schema.column_names, _SHOWN)
    hint = f"; there is {' and '.join(near)}" if near else ""
    raise _refused(path, f"the table has no such column{hint}", config)


def known_schemas(assignment: Assignment, table: Schema | None) -> Iterator[Schema]:
    """Yield the columns of the newest version, of the table, and of earlier versions, latest first."""
    yield assignment.iceberg_schema
    if table is not None:
        yield table
    for version in reversed(assignment.state.versions):
        yield Schema(*(iceberg_field(field) for field in row_mapping_from_text(version.mapping).arrow_schema))


def _problem(field: NestedField, schema: Schema) -> str | None:
    try:
        schema.accessor_for_field(field.field_id)
    except ValueError:
        return "it is inside a list or map, where no engine uses a filter"
    match field.field_type:
        case BooleanType():
            return "it has only two values"
        case FloatType() | DoubleType():
            return "0.0 and -0.0 are equal numbers with different bytes, so a filter would hide rows"
        case IntegerType():
            return (
                "it may be widened to 64 bits, and engines that then look for the wide number in filters of narrow ones"
                " would miss rows"
            )
        case kind if not kind.is_primitive:
            return "it has columns of its own: name those that you look for"
    return None


def _refused(path: str, problem: str, config: TopicConfig) -> ConfigError:
    return ConfigError(
        f"No bloom filter is possible on {path!r}: {problem}",
        key=f"topics.{config.name}.bloom_filters",
        table=config.table,
    )
