"""The topics that a member wants, by names and by a pattern.

Patterns are RE2's, as Kafka's are: no pattern takes more than linear time, so none can hold up a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
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


def pattern_error(pattern: str) -> str | None:
    """Say what is wrong with a pattern; None if nothing is."""
    try:
        for each in (pattern, _whole(pattern)):
            pc.match_substring_regex(pa.array([""], pa.string()), pattern=each)
    except pa.ArrowInvalid as error:
        return str(error)
    return None


def wanted(names: frozenset[str], pattern: str, topics: Topics) -> frozenset[UUID]:
    """The ids of the topics with one of these names, and of those whose whole name the pattern matches."""
    found = {topics[each].topic_id for each in names if each in topics}
    if pattern and topics:
        matched = pc.match_substring_regex(pa.array(list(topics), pa.string()), pattern=_whole(pattern)).to_pylist()
        found |= {topic.topic_id for topic, does in zip(topics.values(), matched, strict=True) if does}
    return frozenset(found)


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"
