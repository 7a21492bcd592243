"""Registers views in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from archiver.archive.tables import CatalogTables
from archiver.config import Config, load_config
from archiver.errors import ConfigError
from archiver.views.choice import ColumnChoice
from archiver.views.dialects import Place, dialect_of, statement
from archiver.views.duckdb.catalog import attach
from archiver.views.kinds import ByteForm, QueryEngine, Rows
from archiver.views.view import view_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class ViewOptions(TypedDict, total=False):
    rows: str
    bytes_as: str
    columns: Sequence[str]
    exclude: Sequence[str]
    depth: int | None


def register(
    connection: DuckDBPyConnection,
    config: Config | Path | str,
    *topics: str,
    name: str | None = None,
    catalog: str = "lake",
    temporary: bool = True,
    **options: Unpack[ViewOptions],
) -> tuple[str, ...]:
    """Create or replace a view of each topic (by default all archived); return the names, such as `orders_flat`.

    The options are as in `archiver views`. Non-temporary views need the catalog attached as `catalog` when queried.
    Raises ConfigError, also if two views would share a name, ReplayError for a topic without an archive, and subclasses
    of TableError.
    """
    loaded = config if isinstance(config, Config) else load_config(Path(config))
    rows, choice = _chosen(**options)
    tables = CatalogTables(loaded)
    attach(connection, loaded.catalog, name=catalog)
    statements: dict[str, str] = {}
    for topic in topics or tables.topics():
        table = tables.load(topic)
        view = view_of(tuple(table.name()), table.metadata, rows=rows, choice=choice)
        target = Place(catalog=catalog, name=name or view.default_name, temporary=temporary)
        if target.name in statements:
            raise ConfigError(
                "two topics would have one view: register them one by one, each with a `name`", topic=topic
            )
        statements[target.name] = statement(view, dialect_of(QueryEngine.DUCKDB), target)
    for sql in statements.values():
        connection.execute(sql)
    return tuple(statements)


def _chosen(
    *,
    rows: str = Rows.FLAT,
    bytes_as: str = ByteForm.RAW,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    depth: int | None = None,
) -> tuple[Rows, ColumnChoice]:
    return Rows(rows), ColumnChoice(
        wanted=tuple(columns), excluded=tuple(exclude), depth=depth, byte_form=ByteForm(bytes_as)
    )
