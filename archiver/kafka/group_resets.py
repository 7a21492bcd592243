"""Resets of a group's offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from archiver.errors import ConfigError
from archiver.kafka.broker import At, BrokerClient
from archiver.kafka.group_offsets import CommittedOffset

Places: TypeAlias = Mapping[str, Collection[int]]
"""Partitions by topic."""
_Offsets: TypeAlias = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class ToEarliest: ...


@dataclass(frozen=True, slots=True)
class ToLatest: ...


@dataclass(frozen=True, slots=True)
class ToOffset:
    offset: int


@dataclass(frozen=True, slots=True)
class ToTime:
    """In ms since 1970; the end if all records are older."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class ShiftBy:
    offsets: int


ResetTo: TypeAlias = ToEarliest | ToLatest | ToOffset | ToTime | ShiftBy
"""The new offset of a group. An offset outside of a partition's log becomes its nearest end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    topic: str
    partition: int
    before: int | None
    after: int


def planned_moves(
    brokers: BrokerClient, to: ResetTo, places: Places, before: Mapping[str, Mapping[int, CommittedOffset]]
) -> tuple[Move, ...]:
    """`before` are committed offsets. Raises as BrokerClient."""
    former = {
        topic: {number: committed.offset for number, committed in offsets.items()} for topic, offsets in before.items()
    }
    if isinstance(to, ShiftBy):
        _check_known(places, former)
    first, end = _offsets(brokers, places, "earliest"), _offsets(brokers, places, "latest_stable")
    match to:
        case ToEarliest():
            targets = first
        case ToLatest():
            targets = end
        case ToOffset(offset):
            targets = {topic: dict.fromkeys(partitions, offset) for topic, partitions in places.items()}
        case ToTime(milliseconds):
            targets = _offsets(brokers, places, milliseconds)
        case ShiftBy(offsets):
            targets = {
                topic: {partition: former[topic][partition] + offsets for partition in partitions}
                for topic, partitions in places.items()
            }
        case _:
            assert_never(to)
    return tuple(
        Move(
            topic=topic,
            partition=partition,
            before=former.get(topic, {}).get(partition),
            after=min(max(targets[topic][partition], first[topic][partition]), end[topic][partition]),
        )
        for topic, partitions in sorted(places.items())
        for partition in sorted(partitions)
    )


def _offsets(brokers: BrokerClient, places: Places, at: At | int) -> _Offsets:
    return {topic: brokers.list_offsets(topic, partitions, at) for topic, partitions in places.items()}


def _check_known(places: Places, known: _Offsets) -> None:
    lacking = [
        f"{topic}-{number}"
        for topic, numbers in places.items()
        for number in numbers
        if number not in known.get(topic, {})
    ]
    if lacking:
        raise ConfigError(
            "the group has no offset there that could be shifted: leave these partitions out, or give --to-offset or"
            " --to-earliest",
            partitions=", ".join(lacking),
        )
