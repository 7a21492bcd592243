"""`archiver erase`: takes records out of an archive for good."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJsonElsewhere, ConfigPath, Verbose, seconds_of, wants_json
from archiver.errors import ConfigError


def erase(
    topic: Annotated[str, typer.Argument(help="The topic, as Kafka names it.")],
    config: ConfigPath = DEFAULT_CONFIG,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            help="Which records, as for `archiver replay`, and by columns: val.customer.id = 'x'; - reads stdin.",
        ),
    ] = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="Go on with erasures of which some objects still have records.")
    ] = False,
    grace: Annotated[
        str | None,
        typer.Option("--grace", help="How long readers of older snapshots keep their files (1h); none by default."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many would go; change nothing.")] = False,
    json: AsJsonElsewhere = None,
    _verbose: Verbose = False,
) -> None:
    """Erase records: from every file, snapshot and copy, for good. Their offsets stay known as erased.

    Files that have some are written anew without them, older snapshots expire at once, and every object that had them
    is deleted. What tags, branches or young uploads keep is named (exit code 1); --finish goes on with it. Records
    that weren't decoded can't be judged by columns: they stay, and are named, too. Refused under a legal hold. Kafka is
    not touched: delete there too.
    """
    from archiver.config import load_config
    from archiver.records.where import Where
    from archiver.terminal.console import Terminal
    from archiver.terminal.erase_json import erase_lines
    from archiver.terminal.erase_screen import EraseScreen
    from archiver.terminal.output import Output
    from archiver.upkeep.erase.job import Erase, EraseOptions

    as_json = wants_json(json)
    with reported(as_json=as_json):
        if (where is None) == (not finish):
            raise ConfigError("Give --where, or --finish to go on with what was begun")
        text = sys.stdin.read() if where == "-" else where
        options = EraseOptions(grace=seconds_of("--grace", grace) or 0.0, dry_run=dry_run)
        condition = None if text is None else Where.parse(text)
        output = Output(as_json=as_json, lines_of=erase_lines, screen=lambda: EraseScreen(Terminal()))
        with output:
            report = Erase(load_config(config), topic, condition, output, options=options).run()
    if not report.succeeded or output.failed:
        raise typer.Exit(FAILED)
