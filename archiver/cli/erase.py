"""`archiver erase`: takes records out of an archive for good."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.consent import Yes
from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose, seconds_of
from archiver.errors import ConfigError

if TYPE_CHECKING:
    from archiver.config import Config
    from archiver.records.where import Where
    from archiver.upkeep.erase.offset_list import OffsetList
    from archiver.upkeep.erase.report import EraseReport


def erase(
    topic: Annotated[str, typer.Argument(help="The Kafka topic.")],
    config: ConfigPath = DEFAULT_CONFIG,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            help="Condition, as for `archiver replay`, also with columns: val.customer.id = 'x'. - reads stdin.",
        ),
    ] = None,
    offsets: Annotated[
        list[str] | None,
        typer.Option(
            "--offsets",
            metavar="PARTITION:FIRST-LAST",
            help="Records by offset, first and last included: 0:1200-1209 or 0:1200. Repeatable.",
        ),
    ] = None,
    offsets_file: Annotated[
        Path | None,
        typer.Option(
            "--offsets-file",
            metavar="FILE",
            help="File of records, one per line: PARTITION,OFFSET or the output of `archiver replay`. - reads stdin.",
        ),
    ] = None,
    finish: Annotated[bool, typer.Option("--finish", help="Continue unfinished erasures.")] = False,
    grace: Annotated[
        str | None,
        typer.Option("--grace", help="How long readers of older snapshots keep their files (1h). Default: no time."),
    ] = None,
    expire_protected: Annotated[
        bool,
        typer.Option(
            "--expire-protected-snapshots",
            help="Also expire snapshots that the table's history.expire.* keeps. Without it the command asks.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print how many records would be erased and change nothing.")
    ] = False,
    show: Annotated[
        bool,
        typer.Option(
            "--show",
            help="With --dry-run: print the records like `archiver replay --decode`, and the report to standard error.",
        ),
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Erase records from every file, snapshot and copy. Their offsets stay recorded as erased.

    Files that have some are written anew without them, older snapshots expire at once, and every object that had them
    is deleted. What tags, branches or young uploads keep is named (exit code 1); --finish goes on with it. Records
    that weren't decoded can't be judged by columns: they stay, and are named, too. Refused under a legal hold, and
    while the table's gc.enabled is false. Kafka is not touched: delete there too.

    It shows how many records were found, and a few of them, and asks; without a terminal it needs --yes.
    """
    from archiver.cli.consent import consent_to
    from archiver.config import load_config
    from archiver.terminal.console import Terminal
    from archiver.terminal.erase_screen import EraseScreen
    from archiver.terminal.output import Output
    from archiver.upkeep.consent import GIVEN
    from archiver.upkeep.erase.job import Erase, EraseOptions

    as_json = as_json and not show  # standard output is for the records then
    with reported(as_json=as_json):
        if show and not dry_run:
            raise ConfigError("--show goes with --dry-run: it prints records before they are erased")
        condition = _condition(where, offsets or (), offsets_file)
        if (condition is None) == (not finish):
            raise ConfigError("Give --where, or --offsets and --offsets-file, or --finish to go on with what was begun")
        options = EraseOptions(
            grace=seconds_of("--grace", grace) or 0.0,
            dry_run=dry_run,
            expires_owned=lambda _snapshots, _settings: expire_protected or _confirmed(as_json=as_json),
        )
        loaded = load_config(config)
        consent = GIVEN if dry_run or finish else consent_to("erase", yes=yes)
        output = Output(EraseScreen(Terminal(stderr=show)), as_json=as_json)
        with output:
            report = Erase(loaded, topic, condition, output, options=options, consent=consent).run()
        if show:
            _show(loaded, report)
    if not report.succeeded or output.failed:
        raise typer.Exit(FAILED)


def _confirmed(*, as_json: bool) -> bool:
    """Ask whether the snapshots may expire, which were just named. No without a terminal."""
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return typer.confirm("Expire these snapshots? Time travel to them ends", default=False)


def _condition(where: str | None, offsets: Sequence[str], file: Path | None) -> Where | OffsetList | None:
    from archiver.records.where import Where
    from archiver.upkeep.erase.offset_list import OffsetList

    if where is not None and (offsets or file):
        raise ConfigError("Give --where, or --offsets and --offsets-file, not both")
    if where is not None:
        return Where.parse(sys.stdin.read() if where == "-" else where)
    if not offsets and file is None:
        return None
    named = OffsetList.parse(offsets)
    if file is not None:
        named = named.joined_with(_listed(file))
    if not named.spans:
        raise ConfigError("the list names no records: nothing is erased", option="--offsets-file")
    return named


def _listed(file: Path) -> OffsetList:
    from archiver.upkeep.erase.offset_list import OffsetList

    if str(file) == "-":
        return OffsetList.read(sys.stdin, name="standard input")
    try:
        with file.open(encoding="utf-8") as lines:
            return OffsetList.read(lines, name=str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the list of offsets can't be read: {error}", option="--offsets-file") from error


def _show(config: Config, report: EraseReport) -> None:
    from archiver.archive.topic_archive import open_archive
    from archiver.cli.replay_export import standard_output
    from archiver.upkeep.erase.shown_records import shown_records

    with standard_output() as stream:
        stream.writelines(shown_records(open_archive(config, report.topic, coerces=False), report.spans))
