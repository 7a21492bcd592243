"""Opens topics for a search, by their names or patterns."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final, Unpack

from archiver.archive.records import AS_CONSUMED, AS_DECODED
from archiver.archive.tables import CatalogTables, TableSource
from archiver.archive.topic_archive import open_archive
from archiver.config import Config
from archiver.errors import ConfigError
from archiver.find.query import FindOptions, FindQuery
from archiver.find.report import FindReport
from archiver.find.search import Search
from archiver.find.source import FindSource

_OPENED_AT_ONCE: Final = 8
_WILD: Final = frozenset("*?[")


def find(
    config: Config, topics: Sequence[str] = (), *, decoded: bool = False, **options: Unpack[FindOptions]
) -> Search:
    """Search topics, by default all archived ones. Iterate for pairs of a topic and an Arrow batch.

    `decoded` adds keys and values shown by their schemas. Raises ConfigError, NoTable, CatalogError and StorageError.
    """
    return open_search(config, topics, FindQuery.parse(**options), decoded=decoded)


def open_search(
    config: Config,
    topics: Sequence[str],
    query: FindQuery,
    *,
    decoded: bool = False,
    tables: TableSource | None = None,
) -> Search:
    """Raises as `find`."""
    source = tables or CatalogTables(config)
    report = FindReport()

    def opened(topic: str) -> FindSource:
        return FindSource.open(
            query, lambda bounded: open_archive(config, topic, source, coerces=False, bounded=bounded), report
        )

    names = chosen_topics(config, topics, source)
    with ThreadPoolExecutor(min(_OPENED_AT_ONCE, len(names)) or 1, thread_name_prefix="open") as pool:
        sources = list(pool.map(opened, names))
    return Search(query=query, sources=sources, report=report, shape=AS_DECODED if decoded else AS_CONSUMED)


def chosen_topics(config: Config, topics: Sequence[str], tables: TableSource) -> list[str]:
    """Return topics with these names or patterns, sorted; all archived topics without any.

    Names aren't looked up. Raises ConfigError for a pattern without a match.
    """
    names = {topic for topic in topics if _WILD.isdisjoint(topic)}
    patterns = [topic for topic in topics if topic not in names]
    if topics and not patterns:
        return sorted(names)
    archived = tables.topics(config.sections)
    for pattern in patterns or ["*"]:
        matching = [topic for topic in archived if fnmatchcase(topic, pattern)]
        if not matching:
            near = get_close_matches(pattern.strip("*?"), archived, 3)
            raise ConfigError(
                "no archived topic has such a name", pattern=pattern, **({"similar": near} if near else {})
            )
        names.update(matching)
    return sorted(names)
