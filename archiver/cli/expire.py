"""`archiver expire`."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.error_output import FAILED, MISCONFIGURED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError


def expire(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all configured topics.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    before: Annotated[
        str | None,
        typer.Option("--before", help="Retire records before this offset or time instead of by the configured limits."),
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this partition. Repeatable.")
    ] = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Also retire rows of files with younger rows, by rewriting these files.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be removed and change nothing.")] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Do not ask, and give consent to retire records of the last day or more than half of a topic.",
        ),
    ] = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Retire the oldest records by `retention` and `retention_size` of each topic, or by --before.

    The archive of a partition begins later then; replay, status and verify tell. Whole files go, and are deleted once
    no snapshot needs them. A legal hold keeps what it covers. May run at the same time as `archiver archive`.

    On a terminal it asks first. Elsewhere it goes on without a question, but a topic that would lose records of the
    last day, or more than half of all, is left as it is until --yes is given (exit code 2).
    """
    from archiver.cli.consent import consent_or_none
    from archiver.config import load_config
    from archiver.records.selection import AtOffset, AtTime, parse_point
    from archiver.terminal.console import Terminal
    from archiver.terminal.expire_screen import ExpireScreen
    from archiver.terminal.output import Output
    from archiver.upkeep.consent import WITHHELD
    from archiver.upkeep.retire.cut import RetireLimits
    from archiver.upkeep.retire.job import Expire

    with reported(as_json=as_json):
        limits: RetireLimits | None = None
        if before is not None:
            match parse_point(before):
                case AtOffset(offset):
                    limits = RetireLimits(offset=offset, partitions=frozenset(partition or ()))
                case AtTime(time_ms):
                    limits = RetireLimits(time_ms=time_ms, partitions=frozenset(partition or ()))
                case _:
                    raise ConfigError("--before is an offset such as 1200, or a time such as 2026-01-31T00:00:00Z")
        elif partition:
            raise ConfigError("--partition goes with --before: `retention` is that of a whole topic")
        if yes and not topics:
            raise ConfigError("--yes is consent for topics: name them")
        consent = WITHHELD if dry_run else consent_or_none(yes=yes) or WITHHELD
        output = Output(ExpireScreen(Terminal()), as_json=as_json)
        with output:
            job = Expire(
                load_config(config), topics or (), output, limits=limits, rows=rows, dry_run=dry_run, consent=consent
            )
            report = job.run()
    if not report.succeeded or output.failed:
        only_waits = report.only_lacks_consent and not output.failed
        raise typer.Exit(MISCONFIGURED if only_waits else FAILED)
