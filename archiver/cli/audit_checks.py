"""Inputs of `archiver audit` besides the store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from archiver.errors import ConfigError

if TYPE_CHECKING:
    from archiver.audit.checkpoints import Checkpoint
    from archiver.audit.trails import FoundTrail
    from archiver.config import Config
    from catalog.registry.audit_chains import ChainHead


@dataclass(slots=True)
class KeptCheckpoints:
    """Externally stored checkpoints by file, and their tables' UUIDs."""

    files: dict[str, bytes]
    tables: dict[str, str]
    _used: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, paths: Sequence[Path]) -> Self:
        """Raises ConfigError."""
        files, tables = {}, {}
        for path in paths:
            try:
                data = path.read_bytes()
                tables[str(path)] = str(json.loads(data)["checkpoint"]["table_uuid"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ConfigError(
                    "This is no checkpoint that can be read", file=str(path), cause=repr(error)
                ) from error
            files[str(path)] = data
        return cls(files, tables)

    def of(self, trail: FoundTrail) -> dict[str, bytes]:
        """An exported trail gets all checkpoints."""
        uuid = None if trail.journal is None else str(trail.journal.uuid)
        kept = {path: data for path, data in self.files.items() if uuid in {None, self.tables[path]}}
        self._used.update(kept)
        return kept

    def refuse_unmatched(self) -> None:
        """Raises ConfigError if a checkpoint's table has no trail."""
        if left := sorted(self.files.keys() - self._used):
            raise ConfigError(
                "A checkpoint is about a table whose trail was not found: name its topic. If it was, the trail is gone",
                files=left,
            )


def heads_of(config: Config) -> dict[str, ChainHead]:
    from archiver.storage.journal import Journal
    from catalog.registry import Registry

    journal = Journal.of(config)
    with Registry(config.registry.dsn) as registry:
        heads = {topic.table: registry.audit.head(topic) for topic in registry.topics.every()}
    named = ((journal.named(table, head.table_uuid).trail, head) for table, head in heads.items() if head is not None)
    return {trail: head for trail, head in named if trail is not None}


def sign_all(config: Config, topics: Sequence[str]) -> dict[str, Checkpoint | None]:
    """Without topics: all."""
    from archiver.audit.trail import AuditTrail
    from archiver.storage.journal import Journal
    from archiver.upkeep.archived_topic import known_topics
    from catalog.registry import Registry

    journal = Journal.of(config)
    with Registry(config.registry.dsn) as registry:
        rows = known_topics(config, topics, registry)
        heads = {row: registry.audit.head(row) for row in rows}
        trails = {
            row.topic: AuditTrail(topic=row, journal=journal.named(row.table, head.table_uuid), registry=registry)
            for row, head in heads.items()
            if head is not None
        }
        return {topic: trail.checkpoint() for topic, trail in trails.items()}
