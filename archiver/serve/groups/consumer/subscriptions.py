"""The topics that a member wants, by names and by a pattern.

Patterns are RE2's, as Kafka's are: no pattern takes more than linear time, so none can hold up a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic that can be read."""

    topic_id: UUID
    partitions: int


Topics: TypeAlias = Mapping[str, KnownTopic]
"""The topics that can be read, by name. A mapping never changes: another state is another mapping."""


class Rights(Protocol):
    """What a member may do. An object never changes: other rights are another object."""

    def sees(self, topic: str) -> bool:
        """Whether it may know of a topic."""

    def reads(self, topic: str) -> bool:
        """Whether it may read a topic."""


def pattern_error(pattern: str) -> str | None:
    """Say what is wrong with a pattern; None if nothing is."""
    try:
        for each in (pattern, _whole(pattern)):
            pc.match_substring_regex(pa.array([""], pa.string()), pattern=each)
    except pa.ArrowInvalid as error:
        return str(error)
    return None


def wanted(names: frozenset[str], pattern: str, topics: Topics, rights: Rights | None = None) -> frozenset[UUID]:
    """The ids of the topics with one of these names, and of those whose whole name the pattern matches.

    Named ones have to be seen, as in Kafka, and matched ones to be read: `rights` says which are. None: all of them.
    """
    found = {topics[each].topic_id for each in names if each in topics and (rights is None or rights.sees(each))}
    if pattern and topics:
        matched = pc.match_substring_regex(pa.array(list(topics), pa.string()), pattern=_whole(pattern)).to_pylist()
        found |= {
            topic.topic_id
            for (name, topic), does in zip(topics.items(), matched, strict=True)
            if does and (rights is None or rights.reads(name))
        }
    return frozenset(found)


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"
