"""Uploads of dead jobs that may hold erased records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from archiver.audit.trail import AuditTrail
from archiver.errors import StorageError
from archiver.observer import ignore
from archiver.storage.file_names import DataFileName
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ListedObject, ObjectStore
from archiver.upkeep.orphans.noted import noted_deletion
from archiver.upkeep.orphans.removal import Checks, remove_orphans
from archiver.upkeep.orphans.report import Orphan, OrphanKind, TopicOrphans
from catalog.iceberg.archive_table import ArchiveTable
from catalog.registry import Registry

Spans = Mapping[int, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """`left` are paths: too young, in doubt, or unreadable."""

    deleted: int = 0
    left: tuple[str, ...] = ()


def remove_copies(
    table: ArchiveTable,
    erased: Spans,
    *,
    registry: Registry,
    trail: AuditTrail,
    checks: Checks,
    formats: SegmentFormats,
    older_than_ms: int,
) -> Copies:
    """Delete unneeded uploads older than `older_than_ms` with erased offsets. Audited.

    Younger ones may belong to a running job. Raises StorageError, RegistryError and TableError.
    """
    objects = ObjectStore.of_table(table.iceberg)
    candidates: list[tuple[ListedObject, DataFileName]] = []
    for part in objects.walk(table.data_location):
        for candidate in part:
            name = DataFileName.parse(candidate.name)
            is_ours = name is not None and name.is_of(table.topic.topic) and name.extension in formats.extensions
            if is_ours and name is not None and candidate.name not in checks.references:
                candidates.append((candidate, name))
    recorded = registry.claims.file_states(table.topic, {candidate.path: name.ulid for candidate, name in candidates})
    going: list[Orphan] = []
    left: list[str] = []
    for candidate, name in candidates:
        is_rewrite = candidate.name in recorded.rewriting
        # The purge deletes replaced and rejected files: the registry has their offsets.
        is_recorded = candidate.name in recorded.states or recorded.needs(candidate.name)
        if (is_recorded and not is_rewrite) or not _may_hold(candidate, name, erased, objects, formats):
            continue
        if is_rewrite or max(candidate.modified_ms or 0, name.created_ms) >= older_than_ms:
            left.append(candidate.path)
            continue
        going.append(
            Orphan(
                path=candidate.path,
                name=candidate.name,
                size=candidate.size,
                modified_ms=candidate.modified_ms or 0,
                kind=OrphanKind.UNKNOWN,
                ulid=name.ulid,
            )
        )
    report = TopicOrphans(topic=table.topic.topic, table=table.topic.table, orphans=tuple(going))
    with noted_deletion(trail, "purge", report):
        remove_orphans(checks, table.topic, report, registry=registry, observer=ignore)
    deleted = {candidate.path for candidate in report.deleted}
    left += [candidate.path for candidate in going if candidate.path not in deleted]
    return Copies(deleted=len(deleted), left=tuple(left))


def _may_hold(
    each: ListedObject, name: DataFileName, erased: Spans, objects: ObjectStore, formats: SegmentFormats
) -> bool:
    """True if the footer can't be read."""
    if not each.size or (name.partition is not None and name.partition not in erased):
        return False
    try:
        with formats.of_path(each.path).open(replace(objects, attempts=1), each.path) as reader:
            origin = reader.metadata.origin
    except StorageError:
        return True
    if origin is None:  # rows of several ranges, rewritten
        return True
    return any(
        start < origin.end_offset and origin.start_offset < end for start, end in erased.get(origin.partition, ())
    )
