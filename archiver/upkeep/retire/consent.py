"""Consent to a retirement: needed under a day, and for more than half of a topic's records.

Kept in the registry for each configured limit; not for a command's limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from archiver.archive.table_files import TableFile
from archiver.commit.retention_consent import consent_missing, short_retention
from archiver.config.model import SHORT_RETENTION, TopicConfig
from archiver.errors import ConsentMissing
from archiver.upkeep.consent import Consent, RemovalQuestion
from archiver.upkeep.removal.components import Component
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.plan import Retirement
from catalog.model import TopicRow
from catalog.offset_range import OffsetRange
from catalog.ranges.spans import Cover
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRemoval:
    """`records` is an upper bound: edge files lose only some."""

    records: int = 0
    of_records: int = 0
    size_bytes: int = 0
    spans: tuple[tuple[int, int, int], ...] = ()
    paths: frozenset[str] = frozenset()

    @classmethod
    def of(cls, planned: Retirement, files: Iterable[TableFile], known: Mapping[int, int]) -> Self:
        return cls(
            records=planned.rows + sum(_rows_below(edge, planned.first_offsets) for edge in planned.edges),
            of_records=sum(file.rows for file in files),
            size_bytes=planned.size_bytes,
            spans=tuple(
                (partition, known.get(partition, 0), offset)
                for partition, offset in sorted(planned.first_offsets.items())
            ),
            paths=frozenset(file.path for part in (*planned.going, *planned.edges) for file in part.files),
        )

    @property
    def is_most(self) -> bool:
        return 2 * self.records > self.of_records

    def is_same(self, other: PlannedRemoval | None) -> bool:
        return other is not None and (self.records, self.spans, self.paths) == (
            other.records,
            other.spans,
            other.paths,
        )

    def is_within(self, other: PlannedRemoval | None) -> bool:
        """True for the rest after a partial commit."""
        if other is None or self.records > other.records or not self.paths <= other.paths:
            return False
        return not Cover(_ranges(other)).beyond(_ranges(self))


def _ranges(removal: PlannedRemoval) -> Iterator[OffsetRange]:
    for partition, start, end in removal.spans:
        if start < end:
            yield OffsetRange.half_open(partition, start, end)


def _rows_below(edge: Component, first_offsets: Mapping[int, int]) -> int:
    below = sum(
        min(range_.expected, max(0, first_offsets.get(range_.partition, 0) - range_.start_offset))
        for range_ in edge.ranges
    )
    return min(edge.rows, below)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementConsent:
    """`configured` is None if the command names limits. `seconds` is the lowest removed age."""

    topic: TopicRow
    registry: Registry
    consent: Consent
    by: str
    configured: str | None
    seconds: float | None

    @classmethod
    def of(
        cls,
        settings: TopicConfig,
        named: RetireLimits | None,
        *,
        topic: TopicRow,
        registry: Registry,
        consent: Consent,
        by: str,
        now: float,
    ) -> Self:
        seconds = settings.retention
        if named is not None:
            seconds = None if named.time_ms is None else now - named.time_ms / 1_000
        return cls(
            topic=topic,
            registry=registry,
            consent=consent,
            by=by,
            configured=None if named is not None else settings.retention_limits,
            seconds=seconds,
        )

    def reasons(self, removal: PlannedRemoval) -> tuple[str, ...]:
        """Empty if no consent is needed or the configured limits have it."""
        reasons = []
        if self.seconds is not None and self.seconds < SHORT_RETENTION:
            reasons.append(short_retention(self.configured or "--before"))
        if removal.is_most:
            reasons.append(f"{removal.records:,} of {removal.of_records:,} records would go, more than half")
        if not reasons or self.configured is None:
            return tuple(reasons)
        stored = self.registry.consents.of_topics((self.topic,))[self.topic.id].get(self.configured)
        return () if stored is not None and stored.is_given else tuple(reasons)

    def check(self, removal: PlannedRemoval, *, is_repeated: bool = False) -> None:
        """Request consent if needed or a person is present. Raises ConsentMissing.

        Consent to configured limits is kept in the registry.
        """
        reasons = self.reasons(removal)
        if not reasons and not (self.consent.asks and removal.spans):
            if self.configured is not None:
                self.registry.consents.withdraw_requests(self.topic)
            return
        question = RemovalQuestion(
            topic=self.topic.topic,
            verb="retire",
            records=removal.records,
            of_records=removal.of_records,
            files=len(removal.paths),
            size_bytes=removal.size_bytes,
            spans=removal.spans,
            facts=reasons,
            is_repeated=is_repeated,
        )
        why = "; ".join(reasons)
        if self.consent(question):
            if reasons and self.configured is not None:
                self.registry.consents.give(self.topic, self.configured, reason=why, by=self.by)
            return
        if reasons and self.configured is not None:
            self.registry.consents.request(self.topic, self.configured, why)
        if self.consent.asks:
            what = "nothing more is retired" if is_repeated else "nothing was retired"
            raise ConsentMissing(f"the question was not answered with yes: {what}", topic=self.topic.topic)
        if self.configured is not None:
            raise consent_missing(self.topic.topic, why)
        raise ConsentMissing(
            f"{why}: nothing was retired. If that is right, give --yes; --dry-run shows what would go",
            topic=self.topic.topic,
        )
