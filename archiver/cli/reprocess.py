"""`archiver reprocess`: decodes rows again that couldn't be decoded, after the schema was corrected."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJsonElsewhere, ConfigPath, wants_json


def reprocess(
    topic: Annotated[str, typer.Argument(help="The topic, as Kafka names it.")],
    config: ConfigPath = DEFAULT_CONFIG,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this partition; may be given again.")
    ] = None,
    start: Annotated[int, typer.Option("--from", min=0, help="Only offsets from this one on.")] = 0,
    end: Annotated[int | None, typer.Option("--to", min=0, help="Only offsets before this one.")] = None,
    code: Annotated[
        list[str] | None, typer.Option("--code", help="Only errors of this code (truncated, …); may be given again.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")] = False,
    json: AsJsonElsewhere = None,
) -> None:
    """Decode rows with `__err__` again, with the schema that the configuration names now.

    The files that hold them are rewritten in one commit. Offsets, order and bytes stay as they are.
    """
    from archiver.config import load_config
    from archiver.observe.bars import Terminal
    from archiver.observe.output import Output
    from archiver.observe.reprocess_json import reprocess_lines
    from archiver.observe.reprocess_screen import ReprocessScreen
    from archiver.upkeep.reprocess.error_rows import ErrorFilter
    from archiver.upkeep.reprocess.job import Reprocess

    as_json = wants_json(json)
    with reported(as_json=as_json):
        wanted = ErrorFilter(
            codes=frozenset(code or ()),
            partitions=frozenset(partition or ()),
            start_offset=start,
            end_offset=ErrorFilter().end_offset if end is None else end,
        )
        output = Output(
            as_json=as_json, lines_of=reprocess_lines, screen=lambda: ReprocessScreen(Terminal(soft_wrap=True))
        )
        with output:
            report = Reprocess(load_config(config), topic, wanted, output, dry_run=dry_run).run()
    if not report.succeeded or output.failed:
        raise typer.Exit(FAILED)
