"""`archiver files`."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose


def files(
    topic: Annotated[str, typer.Argument(help="The Kafka topic.")],
    config: ConfigPath = DEFAULT_CONFIG,
    start: Annotated[
        str | None, typer.Option("--from", help="An offset, or a time (2026-01-31, 2026-01-31T00:00:00Z).")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="An offset or a time; not included.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this Kafka partition. Repeatable.")
    ] = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """List the data files that hold these records: partition, offsets, records, size, times and path.

    Reads manifests only, no data file. Needs the catalog and the store, but neither Kafka nor Postgres. A file without
    bounds in its manifest is listed, too.
    """
    from archiver.archive.tables import CatalogTables
    from archiver.config import load_config
    from archiver.records.listed_files import check_points, listed_files
    from archiver.records.selection import Selection
    from archiver.terminal.answer import print_answer
    from archiver.terminal.files_screen import files_json, files_screen

    with reported(as_json=as_json):
        selection = Selection.parse(start=start, end=end, partitions=tuple(partition or ()))
        check_points(selection)
        table = CatalogTables(load_config(config)).load(topic)
        listed = listed_files(table, selection)
    name = ".".join(table.name())
    values = {
        "topic": topic,
        "table": name,
        "snapshot_id": table.metadata.current_snapshot_id,
        "files": files_json(listed),
    }
    print_answer("files", values, lambda: files_screen(topic, name, listed), as_json=as_json)
