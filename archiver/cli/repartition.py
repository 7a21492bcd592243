"""`archiver repartition`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.terminal.answer import print_answer


def repartition(
    topic: Annotated[str, typer.Argument(help="The Kafka topic.")],
    config: ConfigPath = DEFAULT_CONFIG,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Change the table's partitioning to `partition_by`. It applies to new files.

    Existing files and staged files keep the partitioning that they were written for, until `archiver
    compact --repartition` moves them.
    """
    from archiver.config import load_config
    from archiver.upkeep.repartition import repartition as run

    with reported(as_json=as_json):
        done = run(load_config(config), topic, dry_run=dry_run)
    verb = "is partitioned" if done.was_changed else "would be partitioned"
    text = f"{done.topic}: {done.table} {verb} by {done.after}; its files so far by {done.before}"
    if done.before == done.after and not done.was_changed:
        text = f"{done.topic}: {done.table} is partitioned by {done.after} already"
    print_answer("repartitioned", {**asdict(done), "dry_run": dry_run}, lambda: text, as_json=as_json)
