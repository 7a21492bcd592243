"""Erases metadata of records: entries that name an erased key or offset go whole, with their history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self, assert_never

from archiver.errors import StorageError
from archiver.records.metadata_terms import names_key
from archiver.records.where_syntax import Condition as RecordCondition
from archiver.storage.metadata_folder import AT_ONCE, MetadataFolder
from archiver.storage.objects import ObjectStore
from archiver.upkeep.erase.copies import Spans
from archiver.upkeep.erase.spans import Span, joined_spans
from archiver.upkeep.erase.topic import TopicErasure
from archiver.upkeep.removal.conditions import AtOffsets, Condition, Matching
from catalog.record_metadata import MetadataEntry, OfKey, OfOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRecords:
    """The records of an erasure: offsets, keys of records that were found, and keys that the condition names."""

    spans: Spans
    keys: frozenset[bytes] = frozenset()
    condition: RecordCondition | None = None

    @classmethod
    def of(cls, condition: Condition, found: Iterable[Span], keys: Iterable[bytes]) -> Self:
        named = condition.spans if isinstance(condition, AtOffsets) else {}
        spans = (*found, *((partition, *span) for partition, parts in named.items() for span in parts))
        return cls(
            spans=joined_spans(spans),
            keys=frozenset(keys),
            condition=condition.where.condition if isinstance(condition, Matching) else None,
        )

    def among(self, entries: Iterable[MetadataEntry]) -> tuple[MetadataEntry, ...]:
        return tuple(filter(self._names, entries))

    def _names(self, entry: MetadataEntry) -> bool:
        match entry.target:
            case OfKey(key):
                return key in self.keys or (self.condition is not None and names_key(self.condition, key))
            case OfOffsets() as offsets:
                return offsets.meets(self.spans)
            case _ as never:
                assert_never(never)


def entries_of(work: TopicErasure, *, settled: bool = False) -> tuple[MetadataEntry, ...]:
    """The entries of registry and journal: a restored database may lack some.

    With `settled`, every `set` that began before has ended or is refused. Raises StorageError and RegistryError.
    """
    metadata, folder = work.registry.metadata, work.journal.metadata
    if settled:
        metadata.settle(work.topic)
        metadata.doom_pending(work.topic)
    if folder is None:
        return metadata.load(work.topic)
    objects = folder.ids()  # before the rows, which are added first
    return (*metadata.load(work.topic), *folder.read(objects - metadata.ids(work.topic)))


def keys_of(entries: Iterable[MetadataEntry]) -> frozenset[bytes]:
    return frozenset(entry.target.key for entry in entries if isinstance(entry.target, OfKey))


def doom(work: TopicErasure, entries: Sequence[MetadataEntry]) -> None:
    """Take entries out of use, and delete them if that is possible now."""
    if entries:
        folder = work.journal.metadata
        work.registry.metadata.doom(work.topic, entries, None if folder is None else folder.path)
        _delete_doomed(work)


def erase_metadata(work: TopicErasure, named: Spans) -> dict[str, StorageError]:
    """Delete the entries of erased and `named` offsets, and all that were doomed. Returns failures by object."""
    entries = entries_of(work)
    if entries:
        erased = work.registry.erasures.offsets(work.topic)
        gone = [span for spans in (erased, named) for span in _each(spans)]
        doom(work, NamedRecords(spans=joined_spans(gone)).among(entries))
    return _delete_doomed(work)


def _each(spans: Spans) -> Iterable[Span]:
    return ((partition, start, end) for partition, parts in spans.items() for start, end in parts)


def _delete_doomed(work: TopicErasure) -> dict[str, StorageError]:
    doomed = work.registry.metadata.doomed(work.topic)
    if not doomed:
        return {}
    current = work.journal.metadata
    objects = ObjectStore.of({**work.config.catalog, **work.config.archive.journal_properties})

    def failure(entry_id: str, paths: Sequence[str]) -> tuple[str, StorageError] | None:
        folders = [MetadataFolder(path=path, objects=objects) for path in paths if not current or path != current.path]
        for folder in (*folders, *([current] if current else ())):
            try:
                folder.delete(entry_id)
            except StorageError as error:
                return f"{folder.path}/{entry_id}", error
        return None

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="metadata") as pool:
        failures = dict(zip(doomed, pool.map(failure, doomed, doomed.values()), strict=True))
    work.registry.metadata.forget(work.topic, [entry_id for entry_id, failed in failures.items() if failed is None])
    return dict(failed for failed in failures.values() if failed is not None)
