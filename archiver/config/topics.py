"""Which section of the configuration speaks for a topic, and which table it gets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from archiver.errors import ConfigError

_GLOB = re.compile(r"[*?\[]")
_NOT_IN_TABLE = re.compile(r"[^a-z0-9_]")


def is_pattern(section: str) -> bool:
    """Whether a section's name is a glob (`orders.*`) rather than a topic's name."""
    return bool(_GLOB.search(section))


def section_for(topic: str, sections: Iterable[str]) -> str | None:
    """The section that speaks for `topic`: its own name, else the longest glob that matches, else none."""
    names = list(sections)
    if topic in names:
        return topic
    matching = [name for name in names if is_pattern(name) and fnmatchcase(topic, name)]
    return max(matching, key=lambda name: (len(name), name), default=None)


def default_table(topic: str) -> str:
    """`kafka.<topic>`, lower-cased, what a table name can't hold turned into `_`."""
    return "kafka." + _NOT_IN_TABLE.sub("_", topic.lower())


def refuse_shared_tables(tables: Mapping[str, str]) -> None:
    """Two topics must not write to one table; `tables` maps topic to table."""
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
