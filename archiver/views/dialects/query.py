"""A view's query and statement."""

from __future__ import annotations

from typing import Final, assert_never

from archiver.views.columns import Bytes, Field, HeaderMap, Instant, MergedColumn, Path, Source, StructIsNull
from archiver.views.dialects.dialect import Dialect, Place
from archiver.views.kinds import Rows
from archiver.views.view import View
from schema_mapping import names

_RECORD: Final = "record"
"""What the table is called in the query. Its own name may be that of a column."""
_AGE: Final = "__age__"
_DELETED: Final = "__deleted__"


def statement(view: View, dialect: Dialect, place: Place) -> str:
    """Without a semicolon. Raises the errors of `Dialect.create`."""
    return dialect.create(place, view.table, query(view, dialect, dialect.table(place.catalog, view.table)))


def query(view: View, dialect: Dialect, table: str) -> str:
    """`table` is SQL."""
    columns = [f"{_sql(column.source, dialect)} AS {dialect.quoted(column.name)}" for column in view.columns]
    if view.rows is Rows.LATEST:
        return _latest(view, columns, dialect, table)
    condition = " OR ".join(f"{_field(path, dialect)} IS NOT NULL" for path in view.not_null)
    return _select(columns, _named(table, dialect)) + (f"\nWHERE {condition}" if condition else "")


def _latest(view: View, columns: list[str], dialect: Dialect, table: str) -> str:
    key = _field((names.KEY, names.RAW), dialect)
    partition, offset = (_field((names.KAFKA, name), dialect) for name in (names.PARTITION, names.OFFSET))
    age, deleted = (dialect.quoted(_free(name, view)) for name in (_AGE, _DELETED))
    last = f"row_number() OVER (PARTITION BY {partition}, {key} ORDER BY {offset} DESC) AS {age}"
    gone = f"{_sql(view.tombstone.source, dialect)} AS {deleted}"
    records = _select([*columns, gone, last], _named(table, dialect)) + f"\nWHERE {key} IS NOT NULL"
    inner = "(\n  " + records.replace("\n", "\n  ") + "\n) AS latest"
    return (
        _select([dialect.quoted(column.name) for column in view.columns], inner)
        + f"\nWHERE {age} = 1 AND NOT {deleted}"
    )


def _free(name: str, view: View) -> str:
    taken = {column.name.lower() for column in view.columns}
    while name in taken:
        name += "_"
    return name


def _named(table: str, dialect: Dialect) -> str:
    return f"{table} AS {dialect.quoted(_RECORD)}"


def _field(path: Path, dialect: Dialect) -> str:
    return dialect.field((_RECORD, *path))


def _select(columns: list[str], table: str) -> str:
    return "SELECT\n  " + ",\n  ".join(columns) + f"\nFROM {table}"


def _sql(source: Source, dialect: Dialect) -> str:
    match source:
        case Field():
            return _field(source.path, dialect)
        case Bytes():
            return dialect.bytes_as(_field(source.path, dialect), source.form)
        case HeaderMap():
            return dialect.header_map(_field(source.path, dialect), source.form)
        case Instant():
            return dialect.instant(_field(source.path, dialect))
        case MergedColumn():
            older = [dialect.cast(_field(path, dialect), source.type) for path in source.older]
            return f"coalesce({', '.join((_field(source.path, dialect), *older))})"
        case StructIsNull():
            scalars = [_field(path, dialect) for path in source.scalars]
            collections = [_field(path, dialect) for path in source.collections]
            return dialect.is_null(_field(source.path, dialect), scalars, collections)
        case _:
            assert_never(source)
