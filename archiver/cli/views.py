"""`archiver views`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError
from archiver.terminal.answer import print_answer
from archiver.views.kinds import ByteForm, QueryEngine, Rows

if TYPE_CHECKING:
    from archiver.views.view import View

_COLUMNS = "Columns"
_PLACE = "Where it is"


def views(
    topic: Annotated[str, typer.Argument(help="The Kafka topic.")],
    engine: Annotated[QueryEngine, typer.Option("--engine", "-e", help="SQL dialect.")] = QueryEngine.SPARK,
    latest: Annotated[
        bool, typer.Option("--latest", help="Only the last record of each key, without deleted keys.")
    ] = False,
    errors: Annotated[
        bool, typer.Option("--errors", help="Only values that were not decoded or are kept raw, with their bytes.")
    ] = False,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Create the view in the Iceberg catalog, for Spark and Trino."),
    ] = False,
    merge_changed: Annotated[
        bool,
        typer.Option(
            "--merge-changed",
            help="With --apply: give an existing view one column for old and new values of a field whose type changed.",
        ),
    ] = False,
    config: ConfigPath = DEFAULT_CONFIG,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            help="Only columns with this name or pattern (customer_*). Repeatable.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", help="Omit columns with this name or pattern. Repeatable.", rich_help_panel=_COLUMNS),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth",
            min=0,
            help="Number of struct levels to flatten below key and value. Default: all.",
            show_default=False,
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    byte_form: Annotated[
        ByteForm,
        typer.Option(
            "--bytes",
            help="Form of keys, header values and bytes fields. utf8 prints other bytes as 0x….",
            rich_help_panel=_COLUMNS,
        ),
    ] = ByteForm.RAW,
    technical: Annotated[
        bool,
        typer.Option(
            "--all", help="Also the archiver's columns, such as unrecognized bytes.", rich_help_panel=_COLUMNS
        ),
    ] = False,
    present_names: Annotated[
        bool,
        typer.Option(
            "--present-names",
            help="Use the table's current column names. Default: the first name of each column.",
            rich_help_panel=_COLUMNS,
        ),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="Name of the view. Default: TABLE_flat, TABLE_latest or TABLE_errors.",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", help="Namespace or schema of the view. Default: the table's.", rich_help_panel=_PLACE
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            help="Name of the catalog in the engine or, with --apply, in Trino. Default: lake; Athena: awsdatacatalog.",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    temporary: Annotated[
        bool, typer.Option("--temporary", help="A temporary view of the session.", rich_help_panel=_PLACE)
    ] = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Print a view with a plain column for each field of a topic's table. --apply creates it in the catalog.

    Columns keep their names whatever the schema becomes. Needs only the catalog; reads no records.
    """
    with reported(as_json=as_json):
        if latest and errors:
            raise ConfigError("give either --latest or --errors")
        if merge_changed and not apply:
            raise ConfigError(
                "--merge-changed goes with --apply: a statement that is printed merges such columns anyway"
            )
        if merge_changed and present_names:
            raise ConfigError("give either --merge-changed or --present-names")
        if apply and temporary:
            raise ConfigError("give either --apply or --temporary")
        from archiver.archive.tables import CatalogTables
        from archiver.config import load_config
        from archiver.views.catalog_view import apply_view, check_reads_views
        from archiver.views.choice import ColumnChoice
        from archiver.views.dialects import Place, dialect_of, statement
        from archiver.views.view import view_of

        if apply:
            check_reads_views(engine)
        loaded = load_config(config)
        table = CatalogTables(loaded).load(topic)
        path = tuple(table.name())
        parts = None if namespace is None else tuple(namespace.split("."))
        choice = ColumnChoice(
            wanted=tuple(columns or ()),
            excluded=tuple(exclude or ()),
            depth=depth,
            byte_form=byte_form,
            technical=technical,
        )
        make = partial(
            view_of,
            path,
            table.metadata,
            rows=Rows.LATEST if latest else Rows.ERRORS if errors else Rows.FLAT,
            choice=choice,
            by_present_names=present_names,
        )
        values: dict[str, Any] = {"topic": topic, "table": ".".join(path)}
        if apply:
            done = apply_view(
                loaded.catalog,
                topic,
                path,
                lambda given: make(given=given, merge_changed=merge_changed),
                namespace=parts,
                name=name,
                trino_catalog=catalog,
            )
            values |= {"view": ".".join(done.name), "applied": str(done.put), "columns": _columns(done.view)}
            text = f"{done.put.capitalize()} view {values['view']} with {len(done.view.columns):,} columns."
        else:
            view, dialect = make(), dialect_of(engine)
            target = Place(
                catalog=catalog or dialect.default_catalog,
                namespace=parts,
                name=name or view.default_name,
                temporary=temporary,
            )
            sql = statement(view, dialect, target)
            values |= {"view": target.name, "engine": str(engine), "columns": _columns(view), "sql": sql}
            text = f"{sql};"
    print_answer("view", values, lambda: text, as_json=as_json, soft_wrap=True)


def _columns(view: View) -> list[dict[str, Any]]:
    return [
        {"name": column.name, "field_id": column.field_id, "type": str(column.type), "of": column.doc}
        for column in view.columns
    ]
