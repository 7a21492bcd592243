"""`archiver compact`."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose, bytes_of


def compact(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all archived topics.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this Kafka partition. Repeatable.")
    ] = None,
    target_size: Annotated[
        str | None, typer.Option("--target-size", help="Size of the new files. Default: target_file_size.")
    ] = None,
    min_files: Annotated[
        int | None,
        typer.Option("--min-files", help="Minimum number of small files to merge. Default: compact_min_files.", min=2),
    ] = None,
    max_size: Annotated[
        str | None, typer.Option("--max-size", help="Rewrite at most this many bytes of existing files (20GiB).")
    ] = None,
    tasks: Annotated[
        int, typer.Option("--tasks", help="Number of parallel tasks. 0: the number of Spark's slots.", min=0)
    ] = 0,
    memory: Annotated[str, typer.Option("--memory", help="Memory per task for buffered rows.")] = "128MiB",
    repartition: Annotated[
        bool,
        typer.Option(
            "--repartition",
            help="Also move files of older partitionings to the current one.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Merge small files, sort files with overlapping offsets, and apply delete files of other engines.

    Records stay the same, byte for byte and in order: each new file is read back, and its digest compared, before it
    takes the place of old ones. May run at the same time as `archiver archive` and other engines.
    """
    from archiver.config import load_config
    from archiver.terminal.compact_screen import CompactScreen
    from archiver.terminal.console import Terminal
    from archiver.terminal.output import Output
    from archiver.upkeep.compact.choice import Budget
    from archiver.upkeep.compact.job import Compact, Wish

    with reported(as_json=as_json):
        wish = Wish(
            target_bytes=bytes_of("--target-size", target_size),
            min_files=min_files,
            partitions=frozenset(partition or ()),
            held_bytes=bytes_of("--memory", memory) or 0,
            repartition=repartition,
        )
        loaded = load_config(config)
        budget = Budget(
            parallel=tasks,
            most_bytes=bytes_of("--max-size", max_size),
            commit_seconds=loaded.archive.max_commit_interval,
        )
        output = Output(CompactScreen(Terminal()), as_json=as_json)
        with output:
            report = Compact(loaded, topics or (), wish, output, budget=budget, dry_run=dry_run).run()
    if not report.succeeded or output.failed:
        raise typer.Exit(FAILED)
