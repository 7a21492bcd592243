"""Consumer groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from archiver.kafka.group_resets import Move
from archiver.kafka.groups import Described, Progress
from archiver.terminal.amounts import counted
from archiver.terminal.listing import NOTHING, Column, Listing
from archiver.upkeep.consent import RemovalQuestion


def group_json(found: Described) -> dict[str, Any]:
    members = [
        asdict(member) | {"partitions": [{"topic": topic, "partition": number} for topic, number in member.partitions]}
        for member in found.members
    ]
    return {
        "group": found.group,
        "protocol": found.kind,
        "state": found.state,
        "assignor": found.assignor or None,
        "lag": lag(found.progress),
        "members": members,
        "partitions": [asdict(entry) | {"lag": entry.lag} for entry in found.progress],
    }


def move_json(move: Move) -> dict[str, Any]:
    return asdict(move)


def lag(progress: Sequence[Progress]) -> int | None:
    """None if no lag is known."""
    lags = [entry.lag for entry in progress if entry.lag is not None]
    return sum(lags) if lags else None


def list_screen(found: Sequence[Described]) -> RenderableType:
    if not found:
        return Text("there are no groups")
    listing = Listing(
        Column(heading="group", kind="name"),
        Column(heading="protocol", alone="{}", kind="text"),
        Column(heading="state", alone="{}", kind="text"),
        Column(heading="members", alone="{} members"),
        Column(heading="lag", alone="{} behind"),
    )
    for group in found:
        listing.add(
            Text(group.group, style="bold"),
            group.kind,
            group.state,
            str(len(group.members)),
            _number(lag(group.progress)),
        )
    return listing


def describe_screen(found: Sequence[Described]) -> RenderableType:
    return Group(*(part for index, group in enumerate(found) for part in ([Text("")] if index else []) + _parts(group)))


def registry_screen(screen: RenderableType) -> RenderableType:
    remark = (
        "From the registry: who is reading isn't known. Give --kafka-options, and the server that has the members"
        " describes the groups"
    )
    return Group(screen, Text(remark, style="dim"))


def reset_screen(group: str, moves: Sequence[Move], *, dry_run: bool) -> RenderableType:
    listing = Listing(
        Column(heading="topic", kind="name"),
        Column(heading="partition", alone="partition {}", kind="name"),
        Column(heading="before", alone="from {}"),
        Column(heading="after", alone="to {}"),
    )
    for move in moves:
        listing.add(move.topic, str(move.partition), _number(move.before), _number(move.after))
    return Group(Text(f"{group} would go on here (dry run)" if dry_run else f"{group} goes on here"), listing)


def delete_screen(names: Sequence[str], *, dry_run: bool) -> RenderableType:
    return Text("\n".join(f"{name}: {'would be deleted (dry run)' if dry_run else 'deleted'}" for name in names))


def deletion_question(group: Described) -> RemovalQuestion:
    committed = [entry for entry in group.progress if entry.committed is not None]
    return RemovalQuestion(
        verb="forget",
        things=f"the group {group.group} with {counted(len(committed), 'committed offset')}",
        facts=tuple(f"{entry.topic}, partition {entry.partition}: at {entry.committed:,}" for entry in committed),
    )


def _parts(found: Described) -> list[RenderableType]:
    assignor = f", assignor {found.assignor}" if found.assignor else ""
    head = Text(found.group, style="bold").append(
        f": {found.state}, protocol {found.kind}{assignor}, {len(found.members)} members", style="not bold"
    )
    names = {member.member_id: member.instance_id or member.member_id for member in found.members}
    listing = Listing(
        Column(heading="topic", kind="name"),
        Column(heading="partition", alone="partition {}", kind="name"),
        Column(heading="committed", alone="at {}"),
        Column(heading="end", alone="of {}"),
        Column(heading="lag", alone="{} behind"),
        Column(heading="member", alone="read by {}", kind="text"),
    )
    for entry in found.progress:
        reader = names.get(entry.member_id or "", NOTHING)
        listing.add(
            entry.topic, str(entry.partition), _number(entry.committed), _number(entry.end), _number(entry.lag), reader
        )
    parts: list[RenderableType] = [head, *([listing] if found.progress else [])]
    if found.members:
        members = Listing(
            Column(heading="member", kind="name"),
            Column(heading="client", alone="client {}", kind="text"),
            Column(heading="host", alone="at {}", kind="text"),
            Column(heading="partitions", alone="{} partitions"),
        )
        for member in found.members:
            members.add(names[member.member_id], member.client_id, member.host, str(len(member.partitions)))
        parts += [Text(""), members]
    return parts


def _number(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"
