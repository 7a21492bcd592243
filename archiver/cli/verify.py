"""`archiver verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError

_PART = "Only a part"
_SOURCES = "What is asked"
_REPORT = "The report"


def verify(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all configured topics.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    start: Annotated[
        str | None,
        typer.Option("--from", help="earliest, an offset, or a time (2026-01-31T00:00:00Z).", rich_help_panel=_PART),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="latest, an offset, or a time; not included.", rich_help_panel=_PART)
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", help="Only this partition. Repeatable.", rich_help_panel=_PART),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            help="Only ranges with records that match, as for `archiver replay`: val.customer.id = 'x'.",
            rich_help_panel=_PART,
        ),
    ] = None,
    sample: Annotated[
        str | None, typer.Option("--sample", help="Read only this share of the ranges (10%).", rich_help_panel=_PART)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of --sample.", rich_help_panel=_PART)] = 0,
    against_kafka: Annotated[
        bool,
        typer.Option(
            "--against-kafka",
            help="Also compare with the records that the brokers still have.",
            rich_help_panel=_SOURCES,
        ),
    ] = False,
    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata",
            metavar="URI",
            help="The table's metadata file or metadata folder, instead of the catalog.",
            rich_help_panel=_SOURCES,
        ),
    ] = None,
    without_registry: Annotated[
        bool, typer.Option("--without-registry", help="Do not use Postgres.", rich_help_panel=_SOURCES)
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Read every file, including files that an unfinished run has verified.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the report as JSON, signed with [audit] signing_key, and as FILE.md and FILE.html.",
            rich_help_panel=_REPORT,
        ),
    ] = None,
    check_report: Annotated[
        Path | None,
        typer.Option(
            "--check-report",
            metavar="FILE",
            help="Check the signature of a report and verify nothing else.",
            rich_help_panel=_REPORT,
        ),
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(
            "--public-key", metavar="FILE", help="Public key of the report's signature (PEM).", rich_help_panel=_REPORT
        ),
    ] = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Read whole tables and prove that they contain every archived record, offset by offset.

    Every file is read, its records are given back as a replay gives them, and their digests are held against footers,
    journal, registry and snapshots. Nothing is changed. Kafka isn't needed, nor Postgres, nor the catalog: the journal
    and the object store are enough.
    """
    from archiver.config import load_config
    from archiver.terminal.console import Terminal
    from archiver.terminal.output import Output
    from archiver.terminal.verify_screen import VerifyScreen
    from archiver.upkeep.verify.choice import VerifyChoice
    from archiver.upkeep.verify.job import Verify, VerifyOptions

    with reported(as_json=as_json):
        if check_report is not None:
            _check(check_report, public_key, as_json=as_json)
            return
        if public_key is not None:
            raise ConfigError("--public-key goes with --check-report")
        choice = VerifyChoice.parse(
            start=start, end=end, partitions=tuple(partition or ()), sample=sample, seed=seed, where=where
        )
        if where is not None and (metadata is not None or without_registry):
            raise ConfigError("--where reads the table and its schema's history: it needs the catalog and the registry")
        output = Output(VerifyScreen(Terminal()), as_json=as_json)
        with output:
            done = Verify(
                load_config(config),
                topics or (),
                output,
                choice=choice,
                options=VerifyOptions(
                    compares=against_kafka,
                    metadata=metadata,
                    asks_registry=not without_registry,
                    resumes=not fresh,
                    path=report,
                ),
            ).run()
    if not done.succeeded or output.failed:
        raise typer.Exit(FAILED)


def _check(path: Path, public_key: Path | None, *, as_json: bool) -> None:
    """Fail if the report was changed, not if it reports faults."""
    from archiver.terminal.answer import print_answer
    from archiver.upkeep.verify.document import check_report

    checked = check_report(path, public_key)
    signed = (
        f"it is signed by key {checked.key_id}" if checked.key_id else "its signature wasn't checked: give --public-key"
    )
    values = {"file": str(path), "key_id": checked.key_id, "report": checked.report}
    text = f"{checked.page}\n{path}: the report is intact, {signed}"
    print_answer("report", values, lambda: text, as_json=as_json, soft_wrap=True)
