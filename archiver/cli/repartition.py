"""`archiver repartition`: gives a topic's table the partitioning of the configuration."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJsonElsewhere, ConfigPath, Verbose, wants_json
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import write_line


def repartition(
    topic: Annotated[str, typer.Argument(help="The Kafka topic.")],
    config: ConfigPath = DEFAULT_CONFIG,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    json: AsJsonElsewhere = None,
    _verbose: Verbose = False,
) -> None:
    """Change the table's partitioning to `partition_by`. It applies to new files.

    Files that exist, and those that are staged, keep the partitioning that they were written for, until `archiver
    compact --repartition` moves them.
    """
    from archiver.config import load_config
    from archiver.upkeep.repartition import repartition as run

    as_json = wants_json(json)
    with reported(as_json=as_json):
        done = run(load_config(config), topic, dry_run=dry_run)
    if as_json:
        write_line("repartitioned", **asdict(done), dry_run=dry_run)
        return
    if done.before == done.after and not done.was_changed:
        TextConsole().print(f"{done.topic}: {done.table} is partitioned by {done.after} already")
        return
    verb = "is partitioned" if done.was_changed else "would be partitioned"
    TextConsole().print(f"{done.topic}: {done.table} {verb} by {done.after}; its files so far by {done.before}")
