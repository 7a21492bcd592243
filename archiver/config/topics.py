"""Finds a topic's section."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from archiver.errors import ConfigError

_GLOB = re.compile(r"[*?\[]")

_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")


def is_pattern(section: str) -> bool:
    return bool(_GLOB.search(section))


def section_for(topic: str, sections: Iterable[str]) -> str | None:
    """By name, else the longest matching glob."""
    names = list(sections)
    if topic in names:
        return topic
    matching = [name for name in names if is_pattern(name) and fnmatchcase(topic, name)]
    return max(matching, key=lambda name: (len(name), name), default=None)


def unmatched(topics: Iterable[str], sections: Iterable[str]) -> tuple[str, ...]:
    names = list(topics)
    return tuple(
        glob
        for glob in sorted(sections)
        if is_pattern(glob) and glob not in names and not any(fnmatchcase(name, glob) for name in names)
    )


def internal_hint(pattern: str) -> str:
    topic = next((name for name in _INTERNAL if pattern.startswith("_") and fnmatchcase(name, pattern)), None)
    return "" if topic is None else f"; patterns leave out Kafka's internal topics: name them, as in [topics.{topic}]"


def refuse_shared_tables(tables: Mapping[str, str]) -> None:
    """Raises ConfigError if two topics share a table. `tables` maps topic to table."""
    topics_of: dict[str, list[str]] = defaultdict(list)
    for topic, table in tables.items():
        topics_of[table].append(topic)
    for table, topics in topics_of.items():
        if len(topics) > 1:
            raise ConfigError(
                "Two topics would share one table; set `table` in the section of one of them",
                table=table,
                topics=sorted(topics),
            )


def near_topic(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'orders'?`, or an empty text."""
    near = get_close_matches(name, [topic for topic in known if not is_pattern(topic)], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
