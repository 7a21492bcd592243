"""Consumer groups: members, progress and resets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from archiver.errors import ConfigError, SourceError
from archiver.kafka.admin import ClusterAdmin, GroupMember
from archiver.kafka.broker import BrokerClient
from archiver.kafka.group_offsets import CommittedOffset, every_committed_offset
from archiver.kafka.group_resets import Move, Places, ResetTo, planned_moves


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Unknown values are None."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    member_id: str | None = None

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.end is None else max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    group: str
    kind: str
    state: str
    assignor: str
    members: tuple[GroupMember, ...]
    progress: tuple[Progress, ...]


class ConsumerGroups:
    """Raises as ClusterAdmin and BrokerClient."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._admin = ClusterAdmin(options)
        self._brokers = BrokerClient(options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._brokers.close()
        self._admin.__exit__(*error)

    def describe(self, names: Iterable[str] | None = None) -> tuple[Described, ...]:
        """Raises SourceError for an unknown group."""
        existing = self._admin.groups()
        selected = existing if names is None else tuple(dict.fromkeys(names))
        if missing := [group for group in selected if group not in existing]:
            raise SourceError("there is no such group: `archiver groups list` shows all", groups=", ".join(missing))
        return tuple(self._described(group) for group in selected)

    def planned_reset(
        self, group: str, to: ResetTo, *, topics: Collection[str] = (), partitions: Collection[int] = ()
    ) -> tuple[Move, ...]:
        """By default, all committed partitions."""
        before = every_committed_offset(self._brokers, group)
        return planned_moves(self._brokers, to, self._places(group, before, topics, partitions), before)

    def reset(self, group: str, moves: Iterable[Move]) -> None:
        """Raises SourceError for an active group."""
        self._admin.check_inactive(group)
        offsets: dict[str, dict[int, CommittedOffset]] = {}
        for move in moves:
            offsets.setdefault(move.topic, {})[move.partition] = CommittedOffset(offset=move.after)
        self._admin.commit_all(group, offsets)

    def delete(self, group: str) -> None:
        """Raises SourceError for an active or unknown group."""
        self._admin.check_inactive(group)
        self._admin.delete_group(group)

    def check_deletable(self, group: str) -> None:
        self.describe([group])
        self._admin.check_inactive(group)

    def _described(self, group: str) -> Described:
        description = self._admin.describe_group(group)
        committed = every_committed_offset(self._brokers, group)
        readers = {assigned: member.member_id for member in description.members for assigned in member.partitions}
        places: dict[str, set[int]] = {topic: set(offsets) for topic, offsets in committed.items()}
        for topic, partition in readers:
            places.setdefault(topic, set()).add(partition)
        ends = self._brokers.list_offsets_at_once(places, "latest_stable") if places else {}
        progress = tuple(
            Progress(
                topic=topic,
                partition=partition,
                committed=committed[topic][partition].offset if partition in committed.get(topic, {}) else None,
                end=ends.get(topic, {}).get(partition),
                member_id=readers.get((topic, partition)),
            )
            for topic, partitions in sorted(places.items())
            for partition in sorted(partitions)
        )
        return Described(
            group=group,
            kind=description.kind,
            state=description.state,
            assignor=description.assignor,
            members=description.members,
            progress=progress,
        )

    def _places(self, group: str, before: Places, topics: Collection[str], partitions: Collection[int]) -> Places:
        if not topics and not before:
            raise ConfigError("the group has no offsets: name the topics with --topic", group=group)
        if not topics:
            return {topic: sorted(offsets) for topic, offsets in before.items()}
        described = self._brokers.describe(sorted(topics))
        places = {name: sorted(partitions) or sorted(description.partitions) for name, description in described.items()}
        for name, description in described.items():
            if unknown := sorted(set(places[name]) - set(description.partitions)):
                raise ConfigError(
                    "the topic has no such partition", topic=name, partitions=unknown, known=len(description.partitions)
                )
        return places
