"""A view of a topic's table.

- FLAT has every row.
- LATEST has the last record of each key, without deleted keys and records without a key.
- ERRORS has records that couldn't be decoded, or whose bytes are kept beside the columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from archiver.errors import ConfigError
from archiver.views.choice import ColumnChoice, NamedLeaves, choose, every_column, tombstone_column
from archiver.views.column_names import HEADERS, KAFKA, KEY, KEY_ERROR, TOMBSTONE, VALUE, VALUE_ERROR
from archiver.views.columns import Path, ViewColumn
from archiver.views.kinds import Rows
from catalog.iceberg.properties import superseded_of
from catalog.iceberg.schema_history import schema_history
from schema_mapping import names

_OF_ERRORS: Final = KAFKA | {KEY, KEY_ERROR, VALUE, VALUE_ERROR, HEADERS}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One of the columns `not_null` must have a value.

    `names` are of all columns that the table ever had, by id.
    """

    table: Path
    rows: Rows
    columns: tuple[ViewColumn, ...]
    tombstone: ViewColumn
    not_null: tuple[Path, ...]
    names: Mapping[int, str]

    @property
    def default_name(self) -> str:
        return f"{self.table[-1]}_{self.rows}"


def view_of(
    table: Path,
    metadata: TableMetadata,
    *,
    rows: Rows = Rows.FLAT,
    choice: ColumnChoice | None = None,
    given: Mapping[int, str] | None = None,
    by_present_names: bool = False,
    merge_changed: bool = False,
) -> View:
    """Raises ConfigError if the choice leaves no column, or for ERRORS if nothing is decoded.

    `given` are the view's former names. Without them, or with `merge_changed`, a field whose type changed has one
    column if old values can be cast. `by_present_names` uses the table's current names.
    """
    choice = choice or ColumnChoice()
    schema = metadata.schema()
    history = () if by_present_names else schema_history(metadata)
    named = NamedLeaves.of(
        schema,
        history,
        depth=choice.depth,
        given=None if by_present_names else given,
        superseded=superseded_of(metadata.properties),
        merges=not by_present_names and (merge_changed or not given),
    )
    tombstone = tombstone_column(schema)
    columns = every_column(named, tombstone, choice.byte_form)
    plain = named.plain
    not_null: tuple[Path, ...] = ()
    match rows:
        case Rows.FLAT:
            pass
        case Rows.LATEST:
            columns = tuple(column for column in columns if column.name != TOMBSTONE)
        case Rows.ERRORS:
            not_null = _signs_of_errors(schema, ".".join(table))
            columns = tuple(column for column in columns if column.name in _OF_ERRORS)
            plain = frozenset(named.names)
    return View(
        table=table,
        rows=rows,
        columns=choose(columns, choice, plain),
        tombstone=tombstone,
        not_null=not_null,
        names=named.names,
    )


def _signs_of_errors(schema: Schema, table: str) -> tuple[Path, ...]:
    present = schema.column_names
    signs = [
        path
        for path in ((names.KEY, names.ERR), (names.VAL, names.ERR), (names.VAL, names.RAW))
        if ".".join(path) in present and f"{path[0]}.{names.ERR}" in present
    ]
    if not signs:
        raise ConfigError(
            "--errors: the topic has no schema, so nothing of it is decoded and nothing can fail: leave --errors out",
            table=table,
        )
    return tuple(signs)
