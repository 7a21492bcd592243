"""Conditions on a table's columns, checked against its schema: which column is meant, and the value it is to have."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, StructType

from archiver.errors import ConfigError
from archiver.replay.where import Where
from archiver.replay.where_syntax import ColumnIs
from archiver.upkeep.removal.column_values import INSTEAD, Value, value_for
from schema_mapping import names
from schema_mapping.columns.ledger import LedgerState
from schema_mapping.columns.paths import Path, is_field
from schema_mapping.row import row_mapping_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column below `key` or `val`, by field ids, and the value that it is to have.

    Others tell of which rows it says nothing: `errors` is `__err__`, `unrecognized` are the `__unrecognized__` of each
    message that has it inside, `former` hold the field's values from before its type was changed.
    """

    part: str
    part_id: int
    field_id: int
    errors: int | None
    unrecognized: tuple[int, ...]
    former: tuple[int, ...] = ()
    value: Value


def table_columns(where: Where, schema: Schema, ledger: LedgerState) -> dict[ColumnIs, TableColumn]:
    """The columns that a condition names. ConfigError where the table has none like that, or of another type."""
    found = {each: _column(each, schema) for each in where.columns}
    ids = {column.field_id for column in found.values()}
    enums = _enums(ledger, ids)
    for asked, column in found.items():
        if column.field_id in enums:
            raise ConfigError(
                "--where: the column is an enum. Rows of older schema versions may have its values by other names or"
                f" as numbers, so a condition would miss some: {INSTEAD}",
                column=asked.column,
            )
    former = _former(ledger)
    return {
        asked: replace(column, former=tuple(sorted(former.get(column.field_id, frozenset()) - ids)))
        for asked, column in found.items()
    }


def _former(ledger: LedgerState) -> dict[int, frozenset[int]]:
    """Of each column the others that the same field had, before or after."""
    by_path: dict[tuple[str, Path], set[int]] = {}
    for entry in ledger.entries:
        by_path.setdefault((entry.root, entry.path), set()).add(entry.field_id)
    return {each: frozenset(those - {each}) for those in by_path.values() for each in those}


def _column(asked: ColumnIs, schema: Schema) -> TableColumn:
    part, *below = asked.path
    root = schema.find_field(part)
    kind: IcebergType = root.field_type
    errors: int | None = None
    unrecognized: list[int] = []
    found = root
    for depth, name in enumerate(below, start=1):
        if not isinstance(kind, StructType):
            raise _not_below(asked, depth, kind)
        held = {each.name: each for each in kind.fields}
        if name not in held or name in names.RESERVED:
            raise _unknown(asked, depth, [each for each in held if each not in names.RESERVED])
        unrecognized += [held[names.UNRECOGNIZED].field_id] if names.UNRECOGNIZED in held else []
        if depth == 1 and names.ERR in held:
            errors = held[names.ERR].field_id
        found = held[name]
        kind = found.field_type
    if not kind.is_primitive:
        raise _not_below(asked, len(asked.path), kind)
    return TableColumn(
        part=part,
        part_id=root.field_id,
        field_id=found.field_id,
        errors=errors,
        unrecognized=tuple(unrecognized),
        value=value_for(asked, kind),
    )


def _enums(ledger: LedgerState, wanted: Container[int]) -> frozenset[int]:
    """Those of the wanted columns that are enums in some version of the schema."""
    found: set[int] = set()
    entries = [each for each in ledger.entries if each.field_id in wanted and is_field(each.path[-1])]
    for version in ledger.versions if entries else ():
        row = row_mapping_from_text(version.mapping)
        for entry in entries:
            mapping = row.key if entry.root == names.KEY else row.value
            if entry.field_id in mapping.column_ids and mapping.declared(entry.path).is_enum:
                found.add(entry.field_id)
    return frozenset(found)


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
            has=[each.name for each in kind.fields if each.name not in names.RESERVED],
        )
    if kind.is_primitive:
        return ConfigError(f"--where: `{inside}` is of type {kind}, with nothing below it", column=asked.column)
    return ConfigError(
        f"--where: `{inside}` is a {type(kind).__name__.removesuffix('Type').lower()}, and there are no conditions on"
        f" what lies in one: {INSTEAD}",
        column=asked.column,
    )
