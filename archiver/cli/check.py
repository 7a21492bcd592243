"""`archiver check`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose, seconds_of

if TYPE_CHECKING:
    from archiver.config import Config
    from archiver.setup.findings import Finding


def check(
    config: ConfigPath = DEFAULT_CONFIG,
    no_spark: Annotated[bool, typer.Option("--no-spark", help="Skip the check of Spark, which takes longest.")] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", help="Time limit of a check (30s, 2m). Spark gets four times as long.")
    ] = "30s",
    samples: Annotated[
        int, typer.Option("--samples", min=0, max=10_000, help="Number of records to decode from each topic.")
    ] = 1_000,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Test everything the configuration names: files, spool, Java, Kafka, Postgres, catalog, store, schemas, Spark.

    A sample of each topic's values is decoded.

    Every check runs, also if others fail. What is made for it (a table, objects) is removed again. Exits with 1 if a
    check fails, with 2 if the configuration doesn't load.
    """
    from archiver.config import load_config
    from archiver.terminal.answer import print_answer
    from archiver.terminal.check_screen import check_json, finding_lines, verdict
    from archiver.terminal.console import TextConsole

    with reported(as_json=as_json):
        seconds = seconds_of("--timeout", timeout) or 0.0
        loaded = load_config(config)
        findings: list[Finding] = []
        console = TextConsole()
        for finding in _findings(loaded, seconds=seconds, with_spark=not no_spark, samples=samples):
            findings.append(finding)
            if not as_json:
                console.print(finding_lines(finding))
    print_answer("check", check_json(findings), lambda: verdict(findings), as_json=as_json)
    if any(result.failed for result in findings):
        raise typer.Exit(FAILED)


def _findings(config: Config, *, seconds: float, with_spark: bool, samples: int) -> Iterator[Finding]:
    from archiver.cli.retention_check import RETENTION, look_at_retention
    from archiver.setup.check import checks_of
    from archiver.setup.findings import Check
    from archiver.setup.partition_checks import PARTITIONS, look_at_partitions

    retention = Check(part=RETENTION, look=lambda: look_at_retention(config), seconds=seconds)
    partitions = Check(part=PARTITIONS, look=lambda: look_at_partitions(config), seconds=seconds)
    checks = checks_of(config, seconds=seconds, with_spark=with_spark, samples=samples)
    for part_check in (*checks, retention, partitions):
        yield from part_check.findings()
