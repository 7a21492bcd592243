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
        "partitions": [asdict(each) | {"lag": each.lag} for each in found.progress],
    }


def move_json(move: Move) -> dict[str, Any]:
    return asdict(move)


def lag(progress: Sequence[Progress]) -> int | None:
    """None if no lag is known."""
    known = [each.lag for each in progress if each.lag is not None]
    return sum(known) if known else None


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
    for each in found:
        listing.add(
            Text(each.group, style="bold"), each.kind, each.state, str(len(each.members)), _number(lag(each.progress))
        )
    return listing


def describe_screen(found: Sequence[Described]) -> RenderableType:
    return Group(*(part for place, each in enumerate(found) for part in ([Text("")] if place else []) + _parts(each)))


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
    committed = [place for place in group.progress if place.committed is not None]
    return RemovalQuestion(
        verb="forget",
        things=f"the group {group.group} with {counted(len(committed), 'committed offset')}",
        facts=tuple(f"{place.topic}, partition {place.partition}: at {place.committed:,}" for place in committed),
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
    for each in found.progress:
        reader = names.get(each.member_id or "", NOTHING)
        listing.add(
            each.topic, str(each.partition), _number(each.committed), _number(each.end), _number(each.lag), reader
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
