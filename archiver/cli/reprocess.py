"""`archiver reprocess`."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError


def reprocess(
    topic: Annotated[str, typer.Argument(help="The Kafka topic.")],
    config: ConfigPath = DEFAULT_CONFIG,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this partition. Repeatable.")
    ] = None,
    start: Annotated[int, typer.Option("--from", min=0, help="First offset.")] = 0,
    end: Annotated[int | None, typer.Option("--to", min=0, help="Offset after the last one.")] = None,
    code: Annotated[
        list[str] | None, typer.Option("--code", help="Only errors with this code (truncated, …). Repeatable.")
    ] = None,
    unrecognized: Annotated[
        bool, typer.Option("--unrecognized", help="Also rows with fields that their schema did not have.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="All rows of older schema versions, including rows archived as bytes.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Decode rows with `__err__` again with the configured schema.

    The files that hold them are rewritten in one commit. Offsets, order and bytes stay as they are. A row whose columns
    would become poorer stays as it is.
    """
    from archiver.config import load_config
    from archiver.terminal.console import Terminal
    from archiver.terminal.output import Output
    from archiver.terminal.reprocess_screen import ReprocessScreen
    from archiver.upkeep.reprocess.job import Reprocess
    from archiver.upkeep.reprocess.row_filter import Reach, RowFilter

    with reported(as_json=as_json):
        if code and (unrecognized or everything):
            raise ConfigError("--code names errors: it doesn't go with --unrecognized and --all")
        row_filter = RowFilter(
            reach=Reach.ALL if everything else Reach.UNRECOGNIZED if unrecognized else Reach.ERRORS,
            codes=frozenset(code or ()),
            partitions=frozenset(partition or ()),
            start_offset=start,
            end_offset=RowFilter().end_offset if end is None else end,
        )
        output = Output(ReprocessScreen(Terminal()), as_json=as_json)
        with output:
            report = Reprocess(load_config(config), topic, row_filter, output, dry_run=dry_run).run()
    if not report.succeeded or output.failed:
        raise typer.Exit(FAILED)
