"""`archiver refill`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.consent import Yes
from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError
from archiver.terminal.amounts import counted
from archiver.terminal.answer import print_answer

if TYPE_CHECKING:
    from archiver.upkeep.refill.report import MendedHole, RefillReport


def refill(
    topic: Annotated[str, typer.Argument(help="The Kafka topic.")],
    config: ConfigPath = DEFAULT_CONFIG,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    accept_removed: Annotated[
        bool,
        typer.Option("--accept-removed", help="Restore nothing; record the missing records as erased on purpose."),
    ] = False,
    accept_lost: Annotated[
        bool, typer.Option("--accept-lost", help="Record as lost what neither a file nor Kafka has.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Restore records that other engines removed from a table by a rollback, a DELETE or an overwrite.

    They come from the files that held them, else from Kafka, in one commit. No `archiver archive` may run for the topic
    meanwhile. Before rows are noted as gone it asks; without a terminal --accept-removed and --accept-lost need --yes.
    """
    from archiver.cli.consent import consent_to
    from archiver.config import load_config
    from archiver.upkeep.consent import GIVEN
    from archiver.upkeep.refill.job import RefillJob

    with reported(as_json=as_json):
        if accept_removed and accept_lost:
            raise ConfigError("Give --accept-removed or --accept-lost, not both")
        loaded = load_config(config)
        option = "--accept-removed" if accept_removed else "--accept-lost"
        accepts = (accept_removed or accept_lost) and not dry_run
        job = RefillJob(
            loaded,
            topic,
            dry_run=dry_run,
            accept_removed=accept_removed,
            accept_lost=accept_lost,
            consent=consent_to(f"refill {option}", yes=yes) if accepts else GIVEN,
        )
        report = job.run()
    print_answer("refilled", _values(report), lambda: "\n".join(_lines(report)), as_json=as_json)
    if not report.succeeded:
        raise typer.Exit(FAILED)


def _values(report: RefillReport) -> dict[str, Any]:
    return {
        "topic": report.topic,
        "table": report.table,
        "succeeded": report.succeeded,
        "dry_run": report.dry_run,
        "was_set_back": report.was_back,
        "commit_id": report.commit_id,
        "holes": [
            {
                "partition": mended.hole.partition,
                "start_offset": mended.hole.start_offset,
                "end_offset": mended.hole.end_offset,
                "records": mended.rows,
                "fate": str(mended.fate),
                "reason": mended.reason,
            }
            for mended in report.mended
        ],
    }


def _lines(report: RefillReport) -> list[str]:
    lines = [_line(hole) for hole in report.mended]
    if not lines:
        lines.append("no row is missing")
    if report.was_back:
        lines.append("the table had been set back" if report.commit_id else "the table is set back")
    changed = "nothing was changed" if report.commit_id is None else f"commit {report.commit_id}"
    return [f"{report.topic} in {report.table}:", *lines, changed]


def _line(each: MendedHole) -> str:
    text = f"  partition {each.hole.partition} {each.hole.span}: {counted(each.rows, 'row')}"
    return f"{text} {str(each.fate).replace('_', ' ')}{f': {each.reason}' if each.reason else ''}"
