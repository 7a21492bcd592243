"""Finds the mapping of a row: in footers, else the registry, else the journal."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from archiver.errors import ReplayError
from archiver.storage.segment import SegmentMetadata
from schema_mapping.errors import ContextError, SchemaMappingError
from schema_mapping.row import RowMapping, row_mapping_from_text

if TYPE_CHECKING:
    from archiver.storage.journal import TableJournal
    from catalog.model import TopicRow
    from catalog.registry import Registry


class MappingSource(Protocol):
    def row_mapping(self, version: int) -> RowMapping | None: ...


class NoMappings:
    def row_mapping(self, version: int) -> RowMapping | None:  # noqa: ARG002 - the protocol's
        return None


class KnownMappings:
    """Mappings from file footers, else `fallback`. Raises ReplayError if both lack it."""

    def __init__(self, topic: str, fallback: MappingSource | None = None) -> None:
        self._topic = topic
        self._fallback = fallback or NoMappings()
        self._texts: dict[int, str] = {}
        self._mappings: dict[int, RowMapping] = {}

    def learn(self, metadata: SegmentMetadata) -> None:
        for version, text in metadata.mappings.items():
            self._texts.setdefault(version, text)

    def row_mapping(self, version: int) -> RowMapping:
        cached = self._mappings.get(version)
        if cached is None:
            cached = self._mappings.setdefault(version, self._find(version))
        return cached

    def _find(self, version: int) -> RowMapping:
        text = self._texts.get(version)
        try:
            mapping = _parsed(text) if text else self._fallback.row_mapping(version)
        except (ValueError, KeyError, TypeError, SchemaMappingError) as error:
            raise ReplayError(
                "the mapping in a file's footer can't be read: upgrade the archiver if a newer one wrote it",
                topic=self._topic,
                schema_version=version,
                cause=str(error),
            ) from error
        if mapping is None:
            raise ReplayError(
                "nobody knows the mapping that wrote these rows: files rewritten by other engines lose it, so give the "
                "replay the registry (`registry.dsn`) that archived the topic",
                topic=self._topic,
                schema_version=version,
            )
        return mapping


@lru_cache(maxsize=64)
def _parsed(text: str) -> RowMapping:
    return row_mapping_from_text(text)


class RegistryMappings:
    """Opens the registry when needed. Raises CatalogError.

    A registry with another `table_uuid` is ignored: its versions are other mappings.
    """

    def __init__(self, *, dsn: str, cluster_id: str, topic: str, table_uuid: UUID) -> None:
        self._dsn = dsn
        self._cluster_id = cluster_id
        self._topic = topic
        self._table_uuid = table_uuid

    def row_mapping(self, version: int) -> RowMapping | None:
        from catalog.registry import RegistryReader

        with RegistryReader(self._dsn, connections=1) as registry:
            topic = registry.topics.find(cluster_id=self._cluster_id, topic=self._topic, table_uuid=self._table_uuid)
            return None if topic is None else registry.ledger.row_mapping(topic, version)


class LedgerMappings:
    def __init__(self, registry: Registry, topic: TopicRow) -> None:
        self._registry = registry
        self._topic = topic

    def row_mapping(self, version: int) -> RowMapping | None:
        """Raise CatalogError if the registry lacks it or doesn't answer."""
        return self._registry.ledger.row_mapping(self._topic, version)


class JournalMappings:
    """Opens the journal when needed. Raises StorageError."""

    def __init__(self, journal: Callable[[], TableJournal]) -> None:
        self._journal = journal

    def row_mapping(self, version: int) -> RowMapping | None:
        journaled = self._journal().schema(version)
        return None if journaled is None else row_mapping_from_text(journaled.version.mapping)


class FirstThatKnows:
    """Raises the first error only if no source has the mapping."""

    def __init__(self, *sources: MappingSource) -> None:
        self._sources = sources

    def row_mapping(self, version: int) -> RowMapping | None:
        failure: ContextError | None = None
        for source in self._sources:
            try:
                mapping = source.row_mapping(version)
            except ContextError as error:
                failure = failure or error
                continue
            if mapping is not None:
                return mapping
        if failure is not None:
            raise failure
        return None
