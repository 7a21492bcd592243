"""`archiver find`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.light_start import quick_imports, spare_pandas

_WHAT = "What to find"
_OUTPUT = "Output"
NOTHING_FOUND = 3


class FoundFormat(StrEnum):
    TABLE = "table"
    JSONL = "jsonl"
    ARROW = "arrow"


def find(
    topics: Annotated[
        list[str] | None, typer.Argument(help="Topics, or patterns with * and ?. Default: all archived topics.")
    ] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    key: Annotated[
        str | None,
        typer.Option(
            "--key", "-k", help="Only records with this key: text, or bytes as 0x00ff.", rich_help_panel=_WHAT
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            help="Only records that match, as for `archiver replay`: val.customer.id = 'x'.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", metavar="NAME=VALUE", help="Only records with this header. Repeatable.", rich_help_panel=_WHAT
        ),
    ] = None,
    meta: Annotated[
        list[str] | None,
        typer.Option(
            "--meta",
            metavar="NAME=VALUE",
            help="Only records with this metadata, from `archiver metadata`. Repeatable.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="An offset, or a time of records (2026-01-31T00:00:00Z).", rich_help_panel=_WHAT),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", help="An offset, or a time of records; not included.", rich_help_panel=_WHAT),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", help="Only this partition. Repeatable.", rich_help_panel=_WHAT),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="End after this many records.", rich_help_panel=_WHAT),
    ] = None,
    oldest_first: Annotated[
        bool,
        typer.Option("--oldest-first", help="Sort by rising time. Default: the newest first.", rich_help_panel=_WHAT),
    ] = False,
    as_json: AsJson = False,
    format_: Annotated[
        FoundFormat | None,
        typer.Option(
            "--format",
            help="table, jsonl (the default with --json), or arrow: an Arrow IPC stream, not decoded.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Only count the records.", rich_help_panel=_OUTPUT)] = False,
    files: Annotated[
        bool,
        typer.Option("--files", help="Only list the data files that may have such records.", rich_help_panel=_OUTPUT),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Also say what each stage ruled out, and what was read.", rich_help_panel=_OUTPUT
        ),
    ] = False,
    _verbose: Verbose = False,
) -> None:
    """Find records by key, header, time, or conditions on their columns: the newest first.

    Reads only files, row groups and pages that may have such records. Needs the catalog and the store, but no Kafka;
    conditions on columns need Postgres. Exit code 0: found, 3: nothing found.
    """
    with quick_imports():
        spare_pandas()
        from archiver.cli.find_output import FindOutput
        from archiver.config import load_config
        from archiver.errors import ConfigError
        from archiver.find.opening import open_search
        from archiver.find.query import FindQuery

    with reported(as_json=as_json):
        if (count and files) or (format_ is not None and (count or files)) or (limit and (count or files)):
            raise ConfigError("--count, --files, and --format or --limit don't go together")
        query = FindQuery.parse(
            where=where,
            key=key,
            headers=header or (),
            metadata=meta or (),
            start=start,
            end=end,
            partitions=partition or (),
            limit=limit,
            oldest_first=oldest_first,
        )
        chosen = format_ or (FoundFormat.JSONL if as_json else FoundFormat.TABLE)
        search = open_search(load_config(config), topics or (), query, decoded=chosen is not FoundFormat.ARROW)
        output = FindOutput(search, as_json=as_json, explain=explain)
        if files:
            total = output.files()
        elif count:
            total = output.count()
        else:
            total = output.records(str(chosen))
    if not total:
        raise typer.Exit(NOTHING_FOUND)
