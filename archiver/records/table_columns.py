"""Resolve conditions on a table's columns by its schema."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, StructType

from archiver.errors import ConfigError
from archiver.records.column_values import INSTEAD, Value, value_for
from archiver.records.former_columns import ColumnHistory
from archiver.records.where import Where
from archiver.records.where_syntax import ColumnIs, Comparison, Match
from schema_mapping import names
from schema_mapping.columns.ledger import LedgerState

_ORDERS: Final = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column below `key` or `val`, by field ids.

    Columns that make a row unknown: `errors` is `__err__`, `unrecognized` the `__unrecognized__` of the messages
    around it, `former` its former columns. `messages` are the message types that have it.
    """

    part: str
    part_id: int
    field_id: int
    errors: int | None
    unrecognized: tuple[int, ...]
    former: tuple[int, ...] = ()
    messages: frozenset[str] = frozenset()
    value: Value
    comparison: Comparison | Match = "="


def table_columns(where: Where, schema: Schema, ledger: LedgerState) -> dict[ColumnIs, TableColumn]:
    """Raises ConfigError if one doesn't exist or has another type."""
    columns = {column: _column(column, schema) for column in where.columns}
    if not columns:
        return {}
    ids = {column.field_id for column in columns.values()}
    history = ColumnHistory(ledger)
    for asked, column in columns.items():
        if history.is_enum(column.field_id):
            raise ConfigError(
                "--where: the column is an enum. Rows of older schema versions may have its values by other names or"
                f" as numbers, so a condition would miss some: {INSTEAD}",
                column=asked.column,
            )
        if asked.comparison in _ORDERS and history.is_unsigned(column.field_id):
            raise ConfigError(
                "--where: the column has unsigned numbers, and large ones are negative in it: compare it with `=`,"
                " `!=` or `in`",
                column=asked.column,
            )
    return {
        asked: replace(
            column,
            former=tuple(sorted(history.former(column.field_id) - ids)),
            messages=history.messages(column.field_id),
        )
        for asked, column in columns.items()
    }


def _column(asked: ColumnIs, schema: Schema) -> TableColumn:
    part, *below = asked.path
    root = schema.find_field(part)
    kind: IcebergType = root.field_type
    errors: int | None = None
    unrecognized: list[int] = []
    current = root
    for depth, name in enumerate(below, start=1):
        if not isinstance(kind, StructType):
            raise _not_below(asked, depth, kind)
        fields = {field.name: field for field in kind.fields}
        if name not in fields or name in names.RESERVED:
            raise _unknown(asked, depth, [sibling for sibling in fields if sibling not in names.RESERVED])
        unrecognized += [fields[names.UNRECOGNIZED].field_id] if names.UNRECOGNIZED in fields else []
        if depth == 1 and names.ERR in fields:
            errors = fields[names.ERR].field_id
        current = fields[name]
        kind = current.field_type
    if not kind.is_primitive:
        raise _not_below(asked, len(asked.path), kind)
    return TableColumn(
        part=part,
        part_id=root.field_id,
        field_id=current.field_id,
        errors=errors,
        unrecognized=tuple(unrecognized),
        value=value_for(asked, kind),
        comparison=asked.comparison,
    )


def _unknown(asked: ColumnIs, depth: int, held: list[str]) -> ConfigError:
    inside = ".".join(asked.path[:depth])
    if not held:
        return ConfigError(
            f"--where: `{inside}` has no columns in the table, since no schema is configured for it: compare `key`,"
            " `value` or `header['name']` instead",
            column=asked.column,
        )
    return ConfigError(f"--where: the table has no such column; `{inside}` has these", column=asked.column, has=held)


def _not_below(asked: ColumnIs, depth: int, kind: IcebergType) -> ConfigError:
    inside = ".".join(asked.path[:depth])
    if isinstance(kind, StructType):
        return ConfigError(
            f"--where: `{inside}` is a struct: name one of its columns",
            column=asked.column,
            has=[field.name for field in kind.fields if field.name not in names.RESERVED],
        )
    if kind.is_primitive:
        return ConfigError(f"--where: `{inside}` is of type {kind}, with nothing below it", column=asked.column)
    return ConfigError(
        f"--where: `{inside}` is a {type(kind).__name__.removesuffix('Type').lower()}, and there are no conditions on"
        f" what lies in one: {INSTEAD}",
        column=asked.column,
    )
