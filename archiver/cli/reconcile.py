"""`archiver reconcile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.error_output import FAILED, print_error, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.terminal.amounts import counted
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import error_json, write_line

if TYPE_CHECKING:
    from archiver.upkeep.reconcile import ReconciledTopic


def reconcile(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all archived topics.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Commit the ranges that were staged while the catalog was unavailable, and settle commits in doubt.

    `archiver archive` does the same at its start. This command needs no Kafka.
    """
    from archiver.config import load_config
    from archiver.upkeep.reconcile import reconcile as run

    with reported(as_json=as_json):
        done = run(load_config(config), topics or ())
    for topic in done:
        if as_json:
            write_reconciled(topic)
            continue
        TextConsole().print(
            f"{topic.topic} in {topic.table}: {counted(topic.landed, 'range')} with {counted(topic.rows, 'record')} "
            f"committed, {counted(topic.waiting, 'range')} still {'waits' if topic.waiting == 1 else 'wait'}"
        )
        for error in topic.errors:
            print_error(error, as_json=False)
    if any(topic.errors for topic in done):
        raise typer.Exit(FAILED)


def write_reconciled(each: ReconciledTopic) -> None:
    write_line(
        "reconciled",
        topic=each.topic,
        table=each.table,
        committed_ranges=each.landed,
        records=each.rows,
        waiting_ranges=each.waiting,
        errors=[error_json(error) for error in each.errors],
    )
