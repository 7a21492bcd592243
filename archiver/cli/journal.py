"""`archiver journal`."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose, seconds_of
from archiver.errors import ConfigError

journal_app = typer.Typer(help="The journal beside the tables.", no_args_is_help=True)


@journal_app.callback()
def root() -> None:
    """The journal beside the tables."""


@journal_app.command("sum")
def sum_up(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: every journal in the store.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    older_than: Annotated[
        str | None, typer.Option("--older-than", help="Only entries older than this (1d, 36h). Default: 1h.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be merged and change nothing.")] = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Merge old entries of journals: many objects become one with the same bytes.

    Jobs do this by themselves once there are many. Needs the journal's store alone. May run at the same time as
    anything else, and be stopped at any moment.
    """
    from archiver.config import load_config
    from archiver.storage.journal_sums import SETTLED_SECONDS
    from archiver.terminal.console import TextConsole
    from archiver.terminal.journal_screen import sums_json, sums_screen
    from archiver.terminal.json_lines import write_line
    from archiver.upkeep.journal_upkeep import SumJournals, TableSums

    def show(done: TableSums) -> None:
        if as_json:
            write_line("summed", **sums_json(done), dry_run=dry_run)
        else:
            console.print(sums_screen(done))

    console = TextConsole()
    with reported(as_json=as_json):
        seconds = seconds_of("--older-than", older_than)
        if seconds is not None and seconds < SETTLED_SECONDS:
            raise ConfigError("--older-than is 1h at least: who wrote a younger entry may write it again")
        job = SumJournals(config=load_config(config), topics=tuple(topics or ()), older_than=seconds, dry_run=dry_run)
        succeeded = job.run(show)
    if not as_json and dry_run:
        console.print("nothing was changed")
    if not succeeded:
        raise typer.Exit(FAILED)
