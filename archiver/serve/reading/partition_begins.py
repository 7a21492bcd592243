"""Log starts of archived partitions, from the registry."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Final

from archiver.archive.topic_archive import TopicArchive
from catalog.registry import RegistryReader

_CONNECTIONS: Final = 2


class PartitionBegins:
    """Connects on first use. Thread-safe."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._lock = Lock()
        self._registry: RegistryReader | None = None

    def begins(self, archive: TopicArchive) -> Mapping[int, int]:
        """Also of partitions without records. Raises the registry's errors."""
        registry = self._opened()
        row = registry.topics.find(cluster_id=archive.cluster_id, topic=archive.topic, table_uuid=archive.table_uuid)
        return {} if row is None else registry.starts.known(row)

    def close(self) -> None:
        with self._lock:
            if self._registry is not None:
                self._registry.close()
            self._registry = None

    def _opened(self) -> RegistryReader:
        with self._lock:
            if self._registry is None:
                self._registry = RegistryReader(self._dsn, connections=_CONNECTIONS)
            return self._registry
