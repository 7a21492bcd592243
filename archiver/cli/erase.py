"""`archiver erase`."""

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
    from archiver.records.where import Where
    from archiver.upkeep.erase.offset_list import OffsetList
    from archiver.upkeep.erase.plan import ErasurePlan


def erase(
    topic: Annotated[str | None, typer.Argument(help="The Kafka topic; none with --plan.", show_default=False)] = None,
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
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="Erase in several topics: a TOML file with an [[erase]] section for each."
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="Write a signed certificate, and beside it a page: FILE and FILE.html.",
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

    Files that have some are rewritten without them, older snapshots expire at once, and every object that had them
    is deleted. What tags, branches or young uploads keep is named (exit code 1); --finish goes on with it. Records
    that weren't decoded can't be judged by columns: they stay, and are named, too. Refused under a legal hold, and
    while the table's gc.enabled is false. Kafka is not touched: delete there too.

    It shows how many records were found, and a few of them, and asks; without a terminal it needs --yes. With --plan
    all topics are searched first, and one question covers them.
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
        condition = _condition(topic, where, offsets or (), offsets_file)
        _check_options(topic, condition, plan, certificate, finish=finish, dry_run=dry_run)
        options = EraseOptions(
            grace=seconds_of("--grace", grace) or 0.0,
            dry_run=dry_run,
            expires_owned=lambda _snapshots, _settings: expire_protected or _confirmed(as_json=as_json),
        )
        loaded = load_config(config)
        consent = GIVEN if dry_run or finish else consent_to("erase", yes=yes)
        output = Output(EraseScreen(Terminal(stderr=show)), as_json=as_json)
        if finish and certificate is not None:
            from archiver.cli.erase_plan import run_finish

            assert topic is not None
            succeeded = run_finish(loaded, topic, output, options=options, certificate=certificate, as_json=as_json)
        elif plan is not None or certificate is not None:
            from archiver.cli.erase_plan import run_plan

            succeeded = run_plan(
                loaded,
                _plan(plan, topic, condition),
                output,
                options=options,
                consent=consent,
                certificate=certificate,
                as_json=as_json,
                shows=show,
            )
        else:
            assert topic is not None
            with output:
                report = Erase(loaded, topic, condition, output, options=options, consent=consent).run()
            succeeded = report.succeeded
            if show:
                from archiver.cli.erase_plan import show_records

                show_records(loaded, (report,))
    if not succeeded or output.failed:
        raise typer.Exit(FAILED)


def _confirmed(*, as_json: bool) -> bool:
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return typer.confirm("Expire these snapshots? Time travel to them ends", default=False)


def _condition(
    topic: str | None, where: str | None, offsets: Sequence[str], file: Path | None
) -> Where | OffsetList | None:
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
        named = named.joined_with(_listed(file, topic or ""))
    if not named.spans:
        raise ConfigError("the list names no records: nothing is erased", option="--offsets-file")
    return named


def _listed(file: Path, topic: str) -> OffsetList:
    from archiver.upkeep.erase.offset_list import OffsetList

    if str(file) == "-":
        return OffsetList.read(sys.stdin, topic=topic, name="standard input")
    return OffsetList.of_file(file, topic=topic)


def _plan(path: Path | None, topic: str | None, condition: Where | OffsetList | None) -> ErasurePlan:
    from archiver.upkeep.erase.plan import ErasurePlan, PlannedErasure, read_plan

    if path is not None:
        return read_plan(path)
    assert topic is not None
    assert condition is not None
    return ErasurePlan(erasures=(PlannedErasure(topic=topic, condition=condition),))


def _check_options(
    topic: str | None,
    condition: Where | OffsetList | None,
    plan: Path | None,
    certificate: Path | None,
    *,
    finish: bool,
    dry_run: bool,
) -> None:
    if plan is not None:
        if condition is not None or finish or topic is not None:
            raise ConfigError("--plan names topics and records: no topic, condition or --finish goes with it")
    elif topic is None:
        raise ConfigError("Name a topic, or a plan for several topics with --plan")
    elif (condition is None) == (not finish):
        raise ConfigError("Give --where, or --offsets and --offsets-file, or --finish to go on with what was begun")
    if certificate is not None and dry_run:
        raise ConfigError("--certificate goes with an erasure, not with --dry-run")
