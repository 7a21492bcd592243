"""`archiver groups`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.consent import Yes
from archiver.cli.error_output import reported
from archiver.cli.options import DEFAULT_CONFIG, AsJson, ConfigPath, Verbose, seconds_of
from archiver.errors import BrokerUnavailable, ConfigError, ConsentMissing

if TYPE_CHECKING:
    from rich.console import RenderableType

    from archiver.config.model import ServeSection
    from archiver.kafka.group_resets import ResetTo
    from archiver.kafka.groups import ConsumerGroups, Described
    from archiver.upkeep.consent import Consent, RemovalQuestion

groups_app = typer.Typer(help="Consumer groups of `archiver serve kafka`.", no_args_is_help=True)

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="Address of `archiver serve kafka`. Default: `serve.advertise`, or `serve.listen`.",
    ),
]
Options = Annotated[
    Path | None,
    typer.Option("--kafka-options", metavar="FILE", help="Client options for TLS and SASL, as name=value lines."),
]
OneGroup = Annotated[str, typer.Argument(metavar="GROUP", help="The group.")]
ManyGroups = Annotated[list[str], typer.Argument(metavar="GROUP…", help="The groups.")]
Dry = Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")]


@groups_app.callback()
def groups() -> None:
    """List, describe, move and delete the consumer groups of `archiver serve kafka`.

    The command queries the server, as Kafka's own tools do. Groups of the live cluster are not among them.
    """


@groups_app.command("list")
def list_groups(
    config: ConfigPath = DEFAULT_CONFIG,
    bootstrap: Bootstrap = None,
    kafka_options: Options = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """List all groups, with their protocol, state, members and lag.

    If the server of the configuration requires a login or TLS, and --kafka-options isn't given, the groups are read
    from the registry: their offsets and lag, but not who is reading.
    """
    from archiver.terminal.groups_screen import list_screen

    with reported(as_json=as_json):
        _show(None, config, bootstrap, kafka_options, list_screen, as_json=as_json)


@groups_app.command()
def describe(
    names: ManyGroups,
    config: ConfigPath = DEFAULT_CONFIG,
    bootstrap: Bootstrap = None,
    kafka_options: Options = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Show the members, assignments, committed offsets and lag of groups.

    From the registry, without members, in the same case as `archiver groups list`.
    """
    from archiver.terminal.groups_screen import describe_screen

    with reported(as_json=as_json):
        _show(names, config, bootstrap, kafka_options, describe_screen, as_json=as_json)


@groups_app.command()
def reset(
    group: OneGroup,
    config: ConfigPath = DEFAULT_CONFIG,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", help="Only this topic; it may be new to the group. Repeatable."),
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this partition of the topic. Repeatable.")
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first record.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0, help="To this offset.")] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="TIME", help="To the first record at or after it: 2026-01-31T12:00:00Z."),
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", help="Move by this many offsets; negative moves back.")
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", metavar="TIME", help="To the first record of the last 10m, 6h, 7d, …"),
    ] = None,
    dry_run: Dry = False,
    bootstrap: Bootstrap = None,
    kafka_options: Options = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Move a group's committed offsets, in all its topics or in the given ones. The group must have no members.

    Give the target by one of --to-… , --shift-by and --by-duration. An offset outside of a partition's records
    becomes its nearest end.
    """
    from archiver.terminal.answer import print_answer
    from archiver.terminal.groups_screen import move_json, reset_screen

    with reported(as_json=as_json):
        to = _one_of(to_earliest, to_latest, to_offset, to_datetime, shift_by, by_duration)
        if partition and len(topic or ()) != 1:
            raise ConfigError("--partition goes with one --topic")
        with groups_of_cluster(config, bootstrap, kafka_options) as asked:
            moves = asked.planned_reset(group, to, topics=topic or (), partitions=partition or ())
            if not dry_run:
                asked.reset(group, moves)
        values = {"group": group, "dry_run": dry_run, "partitions": [move_json(move) for move in moves]}
        print_answer("group_reset", values, lambda: reset_screen(group, moves, dry_run=dry_run), as_json=as_json)


@groups_app.command()
def delete(
    names: ManyGroups,
    config: ConfigPath = DEFAULT_CONFIG,
    dry_run: Dry = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    kafka_options: Options = None,
    as_json: AsJson = False,
    _verbose: Verbose = False,
) -> None:
    """Delete groups and their offsets. They must have no members; all are checked before the first is deleted.

    It shows the offsets and asks; without a terminal it needs --yes.
    """
    from archiver.cli.consent import consent_to
    from archiver.terminal.answer import print_answer
    from archiver.terminal.groups_screen import delete_screen
    from archiver.upkeep.consent import GIVEN

    with reported(as_json=as_json):
        consent = GIVEN if dry_run else consent_to("groups delete", yes=yes)
        with groups_of_cluster(config, bootstrap, kafka_options) as asked:
            for name in names:
                asked.check_deletable(name)
            if consent.asks:
                agree(asked, names, consent)
            if not dry_run:
                for name in names:
                    asked.delete(name)
        values = {"groups": list(names), "dry_run": dry_run}
        print_answer("groups_deleted", values, lambda: delete_screen(names, dry_run=dry_run), as_json=as_json)


def agree(asked: ConsumerGroups, names: Sequence[str], consent: Consent) -> None:
    """Repeat the question until the groups' offsets stay the same. Raises ConsentMissing."""
    from archiver.terminal.groups_screen import deletion_question

    agreed: dict[str, RemovalQuestion] = {}
    is_changed = True
    while is_changed:
        is_changed = False
        for group in asked.describe(names):
            question = deletion_question(group)
            if agreed.get(group.group) == question:
                continue
            if not consent(replace(question, is_repeated=group.group in agreed)):
                raise ConsentMissing("the question was not answered with yes: nothing was deleted", group=group.group)
            agreed[group.group] = question
            is_changed = True


def _show(
    names: Sequence[str] | None,
    config: Path,
    bootstrap: str | None,
    options: Path | None,
    screen: Callable[[Sequence[Described]], RenderableType],
    *,
    as_json: bool,
) -> None:
    from archiver.cli.kept_groups import kept_groups
    from archiver.config import load_config
    from archiver.terminal.answer import print_answer
    from archiver.terminal.groups_screen import group_json, registry_screen

    is_server = bootstrap is not None or options is not None or not _needs_options(load_config(config).serve)
    if is_server:
        with groups_of_cluster(config, bootstrap, options) as asked:
            groups = asked.describe(names)
    else:
        groups = kept_groups(load_config(config), names)
    values = {"source": "server" if is_server else "registry", "groups": [group_json(group) for group in groups]}
    print_answer(
        "groups", values, lambda: screen(groups) if is_server else registry_screen(screen(groups)), as_json=as_json
    )


def _needs_options(serve: ServeSection) -> bool:
    return any(section is not None for section in (serve.tls, serve.sasl, serve.oauth))


@contextmanager
def groups_of_cluster(config: Path, bootstrap: str | None, options: Path | None) -> Iterator[ConsumerGroups]:
    """BrokerUnavailable names the server."""
    from archiver.config import load_config
    from archiver.kafka.groups import ConsumerGroups
    from archiver.republish.client_options import SERVERS, read_properties

    given = {} if options is None else read_properties(options)
    if bootstrap is not None:
        given[SERVERS] = bootstrap
    if not given.get(SERVERS):
        section = load_config(config).serve
        if options is None and _needs_options(section):
            raise ConfigError(
                "the server requires TLS or a login ([serve.tls], [serve.sasl], [serve.oauth]): give"
                " --kafka-options FILE, with security.protocol, and sasl.mechanism, sasl.username and sasl.password"
            )
        given[SERVERS] = section.advertise or section.listen
    try:
        with ConsumerGroups(given) as connected:
            yield connected
    except BrokerUnavailable as error:
        hint = "" if bootstrap is not None or options is not None else ". Start it with `archiver serve kafka`"
        raise BrokerUnavailable(f"{error.message}{hint}", **error.context, server=given[SERVERS]) from error


def _one_of(
    earliest: bool,
    latest: bool,
    offset: int | None,
    time: str | None,
    shift: int | None,
    duration: str | None,
) -> ResetTo:
    import time as clock

    from archiver.kafka.group_resets import ShiftBy, ToEarliest, ToLatest, ToOffset, ToTime

    seconds = seconds_of("--by-duration", duration)
    given: list[ResetTo] = []
    if earliest:
        given.append(ToEarliest())
    if latest:
        given.append(ToLatest())
    if offset is not None:
        given.append(ToOffset(offset))
    if time is not None:
        given.append(ToTime(_milliseconds(time)))
    if shift is not None:
        given.append(ShiftBy(shift))
    if seconds is not None:
        given.append(ToTime(round((clock.time() - seconds) * 1000)))
    if len(given) != 1:
        raise ConfigError(
            "say where the group shall go on, with one of --to-earliest, --to-latest, --to-offset, --to-datetime,"
            " --shift-by and --by-duration"
        )
    return given[0]


def _milliseconds(text: str) -> int:
    from archiver.records.selection import AtTime, parse_point

    point = parse_point(text)
    if not isinstance(point, AtTime):
        raise ConfigError("--to-datetime takes a time with its zone, such as 2026-01-31T12:00:00Z", found=text)
    return point.timestamp
