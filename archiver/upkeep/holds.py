"""`archiver hold`: place, list and release legal holds, which stop every removal.

The result reports records already retired or erased: they don't come back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np

from archiver.archive.topic_archive import TopicArchive, open_archive
from archiver.audit.acts import Noted
from archiver.audit.trail import AuditTrail, author
from archiver.config import Config
from archiver.errors import ConfigError
from archiver.find import find
from archiver.find.block_matches import BlockMatches
from archiver.find.query import named_value
from archiver.records.selection import AtOffset, AtTime, Earliest, Latest, Point, parse_point
from archiver.storage.journal import Journal
from archiver.upkeep.archived_topic import ArchivedTopic, find_archived, known_topics
from archiver.upkeep.offset_spans import offset_spans
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow, new_id
from catalog.ranges.legal_holds import HeldSpan, Hold, of_config
from catalog.ranges.spans import joined
from catalog.registry import Registry
from catalog.registry.holds import removed_spans

MOST_SPANS: Final = 10_000
"""The spans of a hold on records with metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """`retired` are first offsets above the hold's start, `erased` counts offsets.

    Commits in `in_doubt` may still remove records from the table; their files stay in the store.
    """

    topic: str
    hold: Hold
    retired: dict[int, int]
    erased: int
    in_doubt: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicHolds:
    topic: str
    holds: tuple[Hold, ...]


class HoldKeeper:
    def __init__(self, config: Config) -> None:
        self._config = config

    def place(
        self,
        topic: str,
        *,
        start: str | None = None,
        end: str | None = None,
        partitions: Sequence[int] = (),
        metadata: Sequence[str] = (),
        reason: str = "",
    ) -> Placed:
        """Place a hold from start to end (offsets, or times: the first offset at or after).

        Default: everything, present and future. With `metadata` (`NAME=VALUE`): the archived records that have it.

        Raises ConfigError if empty; RegistryError, TableError and
        StorageError.
        """
        first, last = _point(start, "--from"), _point(end, "--to")
        with self._connected() as (registry, catalog):
            archived = find_archived(self._config, topic, registry=registry, catalog=catalog)
            if metadata:
                search = find(self._config, [topic], metadata=metadata, start=start, end=end, partitions=partitions)
                spans = _spans_of(topic, search.matches())
            else:
                spans = self._spans(topic, first, last, tuple(partitions))
            hold = Hold(
                id=new_id(),
                spans=spans,
                reason=reason,
                placed_at=_now(),
                placed_by=self._who(),
                asked=_asked(start, end, metadata),
            )
            self._keep(archived, hold, registry)
            table = catalog.reload(archived.table)  # after it is in force, to report what was removed before
            return Placed(
                topic=topic,
                hold=hold,
                retired={
                    partition: offset
                    for partition, offset in table.first_offsets.items()
                    if any(span.overlaps(partition, 0, offset) for span in spans)
                },
                erased=_erased(hold, registry, archived.topic),
                in_doubt=tuple(
                    rewrite.commit_id
                    for rewrite in registry.rewrites.unfinished(archived.topic)
                    if rewrite.removes
                    and any(span.overlaps(*removed) for span in spans for removed in removed_spans(rewrite))
                ),
            )

    def release(self, topic: str, hold_id: str, *, reason: str = "") -> Hold:
        """Idempotent. Raises RegistryError if there is no such hold."""
        with self._connected() as (registry, catalog):
            archived = find_archived(self._config, topic, registry=registry, catalog=catalog)
            stored = registry.holds.named(archived.topic, hold_id)
            if not stored.is_active:
                return stored
            hold = replace(stored, released_at=_now(), released_by=self._who(), released_why=reason)
            self._keep(archived, hold, registry)
            return hold

    def listed(self, topics: Sequence[str] = (), *, with_released: bool = False) -> tuple[TopicHolds, ...]:
        """By default of all topics that are registered and configured."""
        with Registry(self._config.registry.dsn) as registry:
            return tuple(
                TopicHolds(
                    topic=row.topic,
                    holds=(
                        *of_config(hold=self._config.topic(row.topic).hold),
                        *(hold for hold in registry.holds.load(row) if with_released or hold.is_active),
                    ),
                )
                for row in known_topics(self._config, topics, registry)
            )

    def _keep(self, archived: ArchivedTopic, hold: Hold, registry: Registry) -> None:
        """Write it to journal and audit trail before it takes effect."""
        journal = Journal.of(self._config).of_table(archived.table)
        journal.keep_hold(hold)
        spans = [[span.partition, span.start_offset, span.end_offset] for span in hold.spans]
        details = {"hold": hold.id, "spans": spans, "asked": hold.asked}
        act = (
            Noted(kind="hold", id=f"hold-{hold.id}", details=details | {"reason": hold.reason})
            if hold.is_active
            else Noted(kind="release", id=f"release-{hold.id}", details=details | {"reason": hold.released_why or ""})
        )
        trail = AuditTrail(topic=archived.topic, journal=journal, registry=registry)
        trail.note_hold(is_held=archived.config.hold)
        trail.record(act)
        registry.holds.keep(archived.topic, hold)

    def _who(self) -> str:
        by = author(self._config.audit)
        return f"{by.principal} on {by.host}"

    @contextmanager
    def _connected(self) -> Iterator[tuple[Registry, TableCatalog]]:
        with Registry(self._config.registry.dsn) as registry, TableCatalog(self._config.catalog) as catalog:
            yield registry, catalog

    def _spans(self, topic: str, first: Point, last: Point, partitions: tuple[int, ...]) -> tuple[HeldSpan, ...]:
        if isinstance(last, AtOffset) and isinstance(first, AtOffset) and first.offset >= last.offset:
            raise ConfigError("--from comes after --to: nothing lies between them", start=first.offset, end=last.offset)
        is_by_time = isinstance(first, AtTime) or isinstance(last, AtTime)
        if not is_by_time:
            start = first.offset if isinstance(first, AtOffset) else 0
            end = last.offset if isinstance(last, AtOffset) else None
            whole = HeldSpan(start_offset=start, end_offset=end)
            return tuple(replace(whole, partition=partition) for partition in partitions) or (whole,)
        archive = open_archive(self._config, topic)
        unknown = sorted(set(partitions) - set(archive.partitions))
        if unknown:
            raise ConfigError("the archive has no such partition", topic=topic, partitions=unknown)
        spans = tuple(
            HeldSpan(
                partition=partition,
                start_offset=start_of(archive, partition, first),
                end_offset=end_of(archive, partition, last),
            )
            for partition in partitions or archive.partitions
        )
        kept = tuple(span for span in spans if span.end_offset is None or span.start_offset < span.end_offset)
        if not kept:
            raise ConfigError("no archived record lies between --from and --to", topic=topic)
        # Which records of partitions that come later lie between isn't known: all of them are held.
        return kept if partitions else (*kept, HeldSpan(besides=tuple(sorted(archive.partitions))))


def _spans_of(topic: str, blocks: Iterable[BlockMatches]) -> tuple[HeldSpan, ...]:
    offsets: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for block in blocks:
        for partition in np.unique(block.partitions).tolist():
            offsets[partition] += offset_spans(block.offsets[block.partitions == partition])
    spans = tuple(
        HeldSpan(partition=partition, start_offset=start, end_offset=end)
        for partition, parts in sorted(offsets.items())
        for start, end in joined(parts)
    )
    if not spans:
        raise ConfigError("no archived record has such metadata: no hold was placed", topic=topic)
    if len(spans) > MOST_SPANS:
        raise ConfigError(
            "the records with such metadata lie in too many places for one hold: hold the offsets around them with"
            " --from and --to",
            topic=topic,
            places=len(spans),
            most=MOST_SPANS,
        )
    return spans


def _asked(start: str | None, end: str | None, metadata: Sequence[str]) -> str:
    """The user's choice, without values of metadata: an erasure can't reach a hold."""
    names = sorted({named_value(text)[0] for text in metadata})
    parts = (start and f"from {start}", end and f"to {end}", names and f"with metadata {', '.join(names)}")
    return " ".join(part for part in parts if part)


def start_of(archive: TopicArchive, partition: int, point: Point) -> int:
    match point:
        case AtOffset(offset):
            return offset
        case AtTime(time_ms):
            since = archive.offset_for_time(partition, time_ms)
            return archive.end(partition) if since is None else since
        case _:
            return 0


def end_of(archive: TopicArchive, partition: int, point: Point) -> int | None:
    """None if it isn't archived yet: records until then are held."""
    match point:
        case AtOffset(offset):
            return offset
        case AtTime(time_ms):
            return _after_the_last_before(archive, partition, time_ms)
        case _:
            return None


def _after_the_last_before(archive: TopicArchive, partition: int, time_ms: int) -> int | None:
    """Return the offset after the last older record: later timestamps may lie before it.

    None if the newest record is older, or there is none. Reads all.
    """
    end, is_newest_older = 0, True
    for records in archive.records(partition):
        is_older = records.column("timestamp").to_numpy() < time_ms
        if is_older.any():
            end = int(records.column("offset").to_numpy()[is_older][-1]) + 1
        is_newest_older = bool(is_older[-1])
    return None if is_newest_older else end


def _point(text: str | None, option: str) -> Point:
    """Raise ConfigError for `latest`: a hold without an end covers future records."""
    if text is None:
        return Earliest() if option == "--from" else Latest()
    point = parse_point(text)
    if not isinstance(point, AtOffset | AtTime):
        raise ConfigError(f"{option} is an offset such as 1200, or a time such as 2026-01-31T00:00:00Z", found=text)
    return point


def _erased(hold: Hold, registry: Registry, topic: TopicRow) -> int:
    return sum(
        min(end, 2**63 - 1 if span.end_offset is None else span.end_offset) - max(start, span.start_offset)
        for partition, ranges in registry.erasures.offsets(topic).items()
        for start, end in ranges
        for span in hold.spans
        if span.overlaps(partition, start, end)
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
