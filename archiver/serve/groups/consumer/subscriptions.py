"""Subscriptions by names and RE2 patterns, which match in linear time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

_NO_TEXT: Final = pa.array([""], pa.string())
_MOST_LENGTH: Final = 1024
_MOST_PATTERNS: Final = 1000
_MOST_PATTERNS_OF_OWNER: Final = 100
"""Further patterns of a principal are compiled again: its own oldest one makes room, never another principal's."""


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic that can be read."""

    topic_id: UUID
    partitions: int


Topics: TypeAlias = Mapping[str, KnownTopic]
"""The topics that can be read, by name. A mapping never changes: another state is another mapping."""


class Rights(Protocol):
    """A member's permissions. A change is a new object."""

    def sees(self, topic: str) -> bool: ...

    def reads(self, topic: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Matched:
    names: frozenset[str] = frozenset()
    error: str | None = None


class MatchedTopics(Mapping[str, KnownTopic]):
    """Compiling a pattern takes up to a second, so matches are cached."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._matched: dict[str, Matched] = {}
        self._owned: dict[str, OrderedDict[str, None]] = {}

    def __getitem__(self, name: str) -> KnownTopic:
        return self._topics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    def matched(self, pattern: str) -> Matched | None:
        return self._matched.get(pattern)

    def keep(self, pattern: str, matched: Matched, owner: str = "") -> None:
        """If the cache is full, the owner with the most entries loses one."""
        if pattern not in self._matched:
            self._owned.setdefault(owner, OrderedDict())[pattern] = None
        self._matched[pattern] = matched
        if len(self._owned.get(owner, ())) > _MOST_PATTERNS_OF_OWNER:
            self._drop_oldest(owner)
        elif len(self._matched) > _MOST_PATTERNS:
            self._drop_oldest(max(self._owned, key=lambda name: len(self._owned[name])))

    def _drop_oldest(self, owner: str) -> None:
        pattern, _ = self._owned[owner].popitem(last=False)
        del self._matched[pattern]
        if not self._owned[owner]:
            del self._owned[owner]


def match_names(pattern: str, names: Collection[str]) -> Matched:
    """Thread-safe; releases the GIL."""
    if len(pattern) > _MOST_LENGTH:
        return Matched(error=f"the pattern has {len(pattern)} characters: at most {_MOST_LENGTH} are taken")
    texts = pa.array(list(names) or [""], pa.string())
    try:
        pc.match_substring_regex(_NO_TEXT, pattern=pattern)  # else a bracket could end the group around it
        matches = pc.match_substring_regex(texts, pattern=rf"\A(?:{pattern})\z").to_pylist()
    except pa.ArrowInvalid as error:
        return Matched(error=str(error))
    return Matched(frozenset(name for name, is_matched in zip(names, matches, strict=False) if is_matched))


def pattern_error(pattern: str, topics: Topics) -> str | None:
    matched = _matched(pattern, topics)
    return None if matched is None else matched.error


def wanted(names: frozenset[str], pattern: str, topics: Topics, rights: Rights | None = None) -> frozenset[UUID] | None:
    """Named topics must be visible, matched ones readable; without `rights`, all are.

    None if the pattern isn't matched yet.
    """
    topic_ids = {topics[name].topic_id for name in names if name in topics and (rights is None or rights.sees(name))}
    if pattern:
        matched = _matched(pattern, topics)
        if matched is None:
            return None
        topic_ids |= {topics[name].topic_id for name in matched.names if rights is None or rights.reads(name)}
    return frozenset(topic_ids)


def _matched(pattern: str, topics: Topics) -> Matched | None:
    return topics.matched(pattern) if isinstance(topics, MatchedTopics) else match_names(pattern, topics)
