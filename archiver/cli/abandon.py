"""`archiver abandon`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.consent import Yes
from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose
from archiver.errors import ConfigError, ConsentMissing
from archiver.terminal.amounts import counted
from archiver.terminal.answer import print_answer

if TYPE_CHECKING:
    from archiver.intake.abandon import AbandonedLog
    from archiver.upkeep.consent import Consent, RemovalQuestion
    from catalog.offset_range import OffsetRange


def abandon(
    topic: Annotated[str, typer.Argument(help="A topic with source = 'flight'.")],
    config: ConfigPath = DEFAULT_CONFIG,
    until: Annotated[
        list[str] | None,
        typer.Option(
            "--until",
            metavar="PARTITION:OFFSET",
            help="Last acknowledged offset that a client knows, if it is after the last report. Repeatable.",
        ),
    ] = None,
    skip: Annotated[
        int, typer.Option("--skip", min=0, help="Offsets of each partition that are not given again.")
    ] = 1_000_000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the losses and change nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Give up a lost or damaged write-ahead log: save what can be read, and record the rest as lost.

    It prints which acknowledged offsets are in neither the table nor the folder `flight.wal`, and needs a yes on
    the terminal, or --yes. Rows that clients still have can be sent again afterwards. A log that is whole is refused.
    """
    from archiver.cli.consent import consent_to
    from archiver.config import load_config
    from archiver.intake.abandon import AbandonLog, AbandonOptions
    from archiver.storage.journal import Journal
    from archiver.topics.opening import TopicServers
    from archiver.upkeep.consent import GIVEN
    from catalog.iceberg.table_catalog import TableCatalog
    from catalog.registry import Registry

    with reported(as_json=as_json):
        ends = _ends(until or ())
        loaded = load_config(config)
        consent = GIVEN if dry_run else consent_to("abandon", yes=yes)
        with ExitStack() as closing:
            registry = closing.enter_context(Registry(loaded.registry.dsn))
            catalog = closing.enter_context(TableCatalog(loaded.catalog))
            report = AbandonLog(
                loaded,
                loaded.topic(topic),
                TopicServers(registry=registry, catalog=catalog, journal=Journal.of(loaded)),
                options=AbandonOptions(until=ends, skip=skip, dry_run=dry_run),
                agrees=_agrees(consent),
            ).run()
    print_answer("abandoned", _values(report), lambda: "\n".join(_lines(report)), as_json=as_json)
    if dry_run and report.lost_offsets:
        raise typer.Exit(FAILED)


def _ends(values: Sequence[str]) -> Mapping[int, int]:
    ends: dict[int, int] = {}
    for value in values:
        partition, colon, offset = value.partition(":")
        if not (colon and partition.isdecimal() and offset.isdecimal()):
            raise ConfigError("write PARTITION:OFFSET, such as 0:1234", option="--until", value=value)
        ends[int(partition)] = max(ends.get(int(partition), 0), int(offset) + 1)
    return ends


def _agrees(consent: Consent) -> Callable[[AbandonedLog], bool]:
    def agrees(report: AbandonedLog) -> bool:
        if not consent(_question(report)):
            raise ConsentMissing("the question was not answered with yes: nothing was changed", topic=report.topic)
        return True

    return agrees


def _question(report: AbandonedLog) -> RemovalQuestion:
    from archiver.upkeep.consent import RemovalQuestion

    return RemovalQuestion(
        topic=report.topic,
        verb="note as lost",
        records=report.lost_offsets,
        spans=tuple(
            (offsets.partition, offsets.first, offsets.end)
            for partition in report.partitions
            for offsets in partition.lost
        ),
        facts=tuple(_facts(report)),
    )


def _facts(report: AbandonedLog) -> list[str]:
    log = report.log
    facts = [
        f"the log of {log.folder}, last reported at {log.reported_at:%Y-%m-%d %H:%M:%S} UTC, is given up",
        f"{counted(report.saved_rows, 'row')} can be read from the folder, and will be in the table"
        if report.in_folder
        else "the folder `flight.wal` of this machine doesn't have the log",
    ]
    if log.is_given_up:
        facts.append("an earlier `archiver abandon` has begun with this, and was interrupted: it is continued")
    doubtful = [partition.doubtful for partition in report.partitions if partition.doubtful is not None]
    if doubtful and not log.is_given_up:
        facts.append(
            "rows that were acknowledged after the report are not counted: --until names their offsets. The next"
            f" {len(doubtful[0]):,} offsets of each partition are not given again, whether or not rows had them. If a"
            " partition may have got more rows after the report, answer with no, and give a greater --skip"
        )
    return facts + [f"segment {name} can't be read: {reason}" for name, reason in report.unreadable.items()]


def _values(report: AbandonedLog) -> dict[str, Any]:
    return {
        "topic": report.topic,
        "table": report.table,
        "dry_run": report.dry_run,
        "log": report.log.folder,
        "reported_at": report.log.reported_at.isoformat(timespec="seconds"),
        "in_folder": report.in_folder,
        "saved_rows": report.saved_rows,
        "lost_offsets": report.lost_offsets,
        "partitions": [
            {
                "partition": partition.partition,
                "table_until": partition.end,
                "saved": [_span(offsets) for offsets in partition.saved],
                "lost": [_span(offsets) for offsets in partition.lost],
                "doubtful": _span(partition.doubtful) if partition.doubtful else None,
                "next_offset": partition.next_offset,
            }
            for partition in report.partitions
        ],
        "clients": [{"client": name, "next_batch_id": number} for name, number in report.clients.items()],
        "unreadable": dict(report.unreadable),
    }


def _span(offsets: OffsetRange) -> list[int]:
    """Both offsets are included."""
    return [offsets.first, offsets.last]


def _lines(report: AbandonedLog) -> list[str]:
    state = "would be given up" if report.dry_run else "is given up"
    lines = [f"{report.topic} in {report.table}: the log of {report.log.folder} {state}"]
    for partition in report.partitions:
        kinds = (("saved", partition.saved), ("lost", partition.lost))
        lines += [
            f"  partition {partition.partition}: offsets {offsets.first:,} to {offsets.last:,} {kind}"
            for kind, ranges in kinds
            for offsets in ranges
        ]
        lines.append(f"  partition {partition.partition}: the next row has offset {partition.next_offset:,}")
    lines += [f"  client {name}: the next batch id is {number:,}" for name, number in report.clients.items()]
    return [*lines, *(f"  {fact}" for fact in _facts(report)[1:])]
