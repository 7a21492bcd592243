"""Topics that would share a table: at most one keeps it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence

from archiver.config import TopicConfig
from archiver.config.mistakes import key_text
from catalog.errors import TableTaken


def tables_shared(topics: Sequence[TopicConfig]) -> bool:
    return len({topic.table for topic in topics}) < len(topics)


def refuse_shared(
    topics: Sequence[TopicConfig], owners: Mapping[str, tuple[str, str]], *, cluster_id: str, named: Container[str]
) -> dict[str, TableTaken]:
    """An existing table stays with its topic (`owners`).

    A new one goes to the only topic `named` by a section, otherwise to none.
    """
    sharing: dict[str, list[str]] = defaultdict(list)
    for topic in topics:
        sharing[topic.table].append(topic.name)
    errors = {}
    for table, names in sharing.items():
        if len(names) == 1:
            continue
        owner = _owner(table, names, owners, cluster_id, named)
        for name in names:
            if name != owner:
                errors[name] = TableTaken(
                    "topics would share one table: set `table` for this one in its section",
                    key=key_text(("topics", name, "table")),
                    table=table,
                    **({"topics": sorted(names)} if owner is None else {"taken_by": owner}),
                )
    return errors


def _owner(
    table: str,
    names: Sequence[str],
    owners: Mapping[str, tuple[str, str]],
    cluster_id: str,
    named: Container[str],
) -> str | None:
    if table in owners:
        cluster, topic = owners[table]
        return topic if cluster == cluster_id else None
    sections = [name for name in names if name in named]
    return sections[0] if len(sections) == 1 else None
