"""`archiver archive`."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.error_output import FAILED, SIGNALLED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose, seconds_of
from archiver.errors import ConfigError
from archiver.light_start import quick_imports, spare_pandas


def archive(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all configured topics.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    once: Annotated[
        bool, typer.Option("--once", help="Archive to the end of every topic, then stop (the default).")
    ] = False,
    every: Annotated[
        str | None, typer.Option("--every", help="Repeat at this interval (60s, 5m) until stopped.")
    ] = None,
    accept_gap: Annotated[
        bool,
        typer.Option("--accept-gap", help="Record offsets that the log lost before they were archived, and continue."),
    ] = False,
    accept_unreadable: Annotated[
        bool,
        typer.Option(
            "--accept-unreadable",
            help="Record offsets that a leader can't give as lost, up to its next readable batch, and continue."
            " Only with --once.",
        ),
    ] = False,
    accept_raw: Annotated[
        bool,
        typer.Option("--accept-raw", help="Archive keys or values as bytes that had a schema before."),
    ] = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Archive Kafka topics to Iceberg tables, exactly once. Restart it after any interruption."""
    with quick_imports():
        from archiver.config import load_config
        from archiver.ingest.stopping import stop_on_signals

    with reported(as_json=as_json), stop_on_signals() as stop:
        seconds = _interval(once=once, every=every)
        if accept_unreadable and seconds is not None:
            raise ConfigError("--accept-unreadable needs somebody to look first: give it with --once")
        loaded = load_config(config)
        # only now: to import these takes seconds, and configuration errors are reported first
        with quick_imports(for_good=True):
            spare_pandas()
            from archiver.chores.runner import ChoreRunner
            from archiver.chores.tidying import TIDYING
            from archiver.ingest.job import ArchiveJob
            from archiver.ingest.topic.acceptance import AcceptedLosses
            from archiver.telemetry.start import with_telemetry
            from archiver.terminal.archive_screen import ArchiveScreen
            from archiver.terminal.compact_screen import CompactNotes
            from archiver.terminal.console import Terminal
            from archiver.terminal.expire_screen import ExpireNotes
            from archiver.terminal.output import Output
            from archiver.upkeep.compact.chore import compaction
            from archiver.upkeep.indexing import indexing
            from archiver.upkeep.retire.chore import retirement

        output = Output(ArchiveScreen(Terminal(), repeats=seconds is not None), as_json=as_json)
        notes = Output(CompactNotes(Terminal()), as_json=as_json)
        retired = Output(ExpireNotes(Terminal()), as_json=as_json)
        with output, notes, retired, with_telemetry(loaded, output, retired) as to:
            job = ArchiveJob(
                loaded,
                topics or None,
                to.job,
                accepts=AcceptedLosses(gaps=accept_gap, unreadable=accept_unreadable, raw=accept_raw),
                chores=ChoreRunner(
                    (
                        TIDYING,
                        retirement(loaded, to.retirement, latest=lambda: load_config(config)),
                        compaction(loaded, notes),
                        indexing(loaded),
                    ),
                    to.chores,
                ),
            )
            report = job.run_once(stop) if seconds is None else job.run_every(seconds, stop)
    if not report.succeeded or output.failed:
        raise typer.Exit(FAILED)
    if stop.number is not None and (report.stopped or seconds is not None):
        raise typer.Exit(SIGNALLED + stop.number)


def _interval(*, once: bool, every: str | None) -> float | None:
    if every is not None and once:
        raise ConfigError("Give --once or --every, not both")
    return seconds_of("--every", every)
