"""Groups of `archiver serve kafka`, from the registry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from archiver.errors import SourceError
from archiver.kafka.groups import Described, Progress

if TYPE_CHECKING:
    from archiver.config import Config
    from catalog.model import PartitionOffset
    from catalog.registry import GroupOffset

UNKNOWN: Final = "unknown"


def kept_groups(config: Config, names: Iterable[str] | None = None) -> tuple[Described, ...]:
    """By default all. Raises SourceError if a group has no committed offsets."""
    from archiver.serve.nodes import cluster_id_of
    from catalog.registry import Registry

    cluster = config.serve.cluster_id or cluster_id_of(config.catalog)
    with Registry(config.registry.dsn) as registry:
        groups = registry.group_offsets.groups(cluster)
        chosen = groups if names is None else tuple(dict.fromkeys(names))
        if missing := [name for name in chosen if name not in groups]:
            raise SourceError(
                "the registry has no offsets of such a group: `archiver groups list` shows all groups",
                groups=", ".join(missing),
            )
        ends = {row.topic: registry.files.committed_ends(row) for row in registry.topics.every()}
        return tuple(described_group(name, registry.group_offsets.load(cluster, name), ends) for name in chosen)


def described_group(
    group: str, offsets: Mapping[tuple[str, int], GroupOffset], ends: Mapping[str, Mapping[int, PartitionOffset]]
) -> Described:
    return Described(
        group=group,
        kind=UNKNOWN,
        state=UNKNOWN,
        assignor="",
        members=(),
        progress=tuple(
            Progress(
                topic=topic,
                partition=partition,
                committed=kept.offset,
                end=end.next_offset if (end := ends.get(topic, {}).get(partition)) else None,
            )
            for (topic, partition), kept in sorted(offsets.items())
        ),
    )
