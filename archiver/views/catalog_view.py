"""A view in the Iceberg catalog, for Spark and Trino."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from archiver.errors import ConfigError
from archiver.views.columns import Path
from archiver.views.dialects import dialect_of, query
from archiver.views.kinds import QueryEngine
from archiver.views.view import View
from catalog.iceberg.views import Put, ViewCatalog, ViewDefinition

READERS: Final = (QueryEngine.SPARK, QueryEngine.TRINO)
"""The engines that read views of Iceberg catalogs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    name: Path
    view: View
    put: Put


def check_reads_views(engine: QueryEngine) -> None:
    """Raise ConfigError if the engine reads no views of Iceberg catalogs."""
    if engine in READERS:
        return
    hints = {
        QueryEngine.DUCKDB: "run the printed statement in your database, or call archiver.views.duckdb.register in"
        " Python",
        QueryEngine.CLICKHOUSE: "run the printed statement in a database of ClickHouse's own",
        QueryEngine.ATHENA: "run the printed statement in Athena",
    }
    raise ConfigError(f"--apply: {engine} reads no views of Iceberg catalogs: {hints[engine]}", engine=str(engine))


def apply_view(
    catalog: Mapping[str, str],
    topic: str,
    table: Path,
    make: Callable[[Mapping[int, str]], View],
    *,
    namespace: Path | None = None,
    name: str | None = None,
    trino_catalog: str | None = None,
) -> Applied:
    """`make` gets the former column names; `trino_catalog` is Trino's name of the catalog.

    By default the view is beside the table. Raises the errors of `ViewCatalog`.
    """
    with ViewCatalog(catalog) as views:
        parent = namespace or table[:-1]
        identifier = (*parent, name or make({}).default_name)
        view = make(views.column_names(identifier, topic=topic))
        definition = _definition(view, topic, trino_catalog or dialect_of(QueryEngine.TRINO).default_catalog)
        return Applied(name=identifier, view=view, put=views.put(identifier, definition))


def _definition(view: View, topic: str, trino_catalog: str) -> ViewDefinition:
    spark, trino = (dialect_of(engine) for engine in READERS)
    return ViewDefinition(
        topic=topic,
        schema=Schema(
            *(
                NestedField(field_id=number, name=column.name, field_type=column.type, required=False, doc=column.doc)
                for number, column in enumerate(view.columns, start=1)
            )
        ),
        sql={
            QueryEngine.SPARK: query(view, spark, spark.quoted(view.table[-1])),
            QueryEngine.TRINO: query(view, trino, trino.table(trino_catalog, view.table)),
        },
        tables_in=view.table[:-1],
        column_names=view.names,
    )
