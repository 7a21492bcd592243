"""The account as rows of `account`, written together with `files` (docs/adr/0072).

Acts are pure (`catalog/account/acts.py`); the difference is stored. Writers need the topic's row lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from catalog.account import acts
from catalog.account.interval import Interval
from catalog.model import TopicRow
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import Acceptance
from catalog.ranges.rewrite import RewriteGroup
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import file_rows
from catalog.registry.postgres import Connection

_Act: TypeAlias = Callable[[tuple[Interval, ...]], tuple[Interval, ...]]

_COLUMNS: Final = (
    "partition, first_offset, last_offset, expected_rows, digest, erased_rows, removed_rows, lost_rows, retired_rows,"
    " is_gap, is_unknown, commit_id"
)

_TOUCHED: Final = f"""
SELECT DISTINCT {_COLUMNS} FROM unnest(%(partitions)s::integer[], %(firsts)s::bigint[], %(lasts)s::bigint[])
    AS wanted(p, low, high), LATERAL (
        SELECT * FROM account WHERE topic_id = %(topic)s AND partition = p AND first_offset <= high
        AND first_offset >= coalesce((
            SELECT max(first_offset) FROM account WHERE topic_id = %(topic)s AND partition = p AND first_offset <= low
        ), low) AND last_offset >= low) AS touched
ORDER BY partition, first_offset
"""  # noqa: S608 - no input

_PUT: Final = f"""
INSERT INTO account (topic_id, {_COLUMNS})
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (topic_id, partition, first_offset) DO UPDATE SET last_offset = excluded.last_offset,
    expected_rows = excluded.expected_rows, digest = excluded.digest, erased_rows = excluded.erased_rows,
    removed_rows = excluded.removed_rows, lost_rows = excluded.lost_rows, retired_rows = excluded.retired_rows,
    is_gap = excluded.is_gap, is_unknown = excluded.is_unknown, commit_id = excluded.commit_id
"""  # noqa: S608 - no input


def load(connection: Connection, topic: TopicRow) -> tuple[Interval, ...]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM account WHERE topic_id = %s ORDER BY partition, first_offset",  # noqa: S608 - no input
        (topic.id,),
    )
    return tuple(map(_interval, rows))


def both_books(connection: Connection, topic: TopicRow) -> tuple[tuple[Interval, ...], tuple[StoredRange, ...]]:
    """Consistent if called first in a transaction."""
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    ranges = file_rows.held(connection, topic, "state = 'committed'")
    return load(connection, topic), tuple(interval.range for interval in ranges)


def touched(connection: Connection, topic: TopicRow, offsets: Iterable[OffsetRange]) -> tuple[Interval, ...]:
    touching = sorted(set(offsets))
    if not touching:
        return ()
    rows = connection.execute(
        _TOUCHED,
        {
            "topic": topic.id,
            "partitions": [interval.partition for interval in touching],
            "firsts": [interval.first for interval in touching],
            "lasts": [interval.last for interval in touching],
        },
    )
    return tuple(map(_interval, rows))


def record(connection: Connection, topic: TopicRow, ranges: Iterable[StoredRange]) -> None:
    """Idempotent."""
    fresh = [Interval.of(interval) for interval in ranges]
    _act(
        connection,
        topic,
        map(_with_neighbour, fresh),
        lambda intervals: acts.summed_up(acts.recorded(intervals, fresh), {}),
    )


def rewrite(connection: Connection, topic: TopicRow, group: RewriteGroup, commit_id: str) -> None:
    spans = acts.spans_of(group)
    _act(
        connection,
        topic,
        (interval.offsets for interval in spans),
        lambda intervals: acts.rewritten(intervals, spans, commit_id),
    )


def accept(connection: Connection, topic: TopicRow, interval: StoredRange, accepted: Acceptance) -> None:
    at = OffsetRange.half_open(interval.partition, interval.start_offset, interval.end_offset)
    _act(
        connection,
        topic,
        (at,),
        lambda intervals: acts.accepted(intervals, at, removed=accepted.erased, lost=accepted.lost),
    )


def retire(connection: Connection, topic: TopicRow, first_offsets: Mapping[int, int]) -> None:
    below = [OffsetRange(partition, 0, first - 1) for partition, first in first_offsets.items() if first > 0]
    _act(
        connection,
        topic,
        below,
        lambda intervals: acts.summed_up(acts.retired(intervals, first_offsets), first_offsets),
    )


def restore(connection: Connection, topic: TopicRow, account: Iterable[Interval]) -> None:
    """Add intervals of offsets without any."""
    account = tuple(account)
    before = touched(connection, topic, (interval.offsets for interval in account))
    taken = [interval.offsets for interval in before]
    fresh = [interval for interval in account if not any(interval.offsets.overlaps(offsets) for offsets in taken)]
    _put(connection, topic, fresh)


def _with_neighbour(interval: Interval) -> OffsetRange:
    """Without records also the interval before, which it may join."""
    first = interval.offsets.first if interval.records else max(0, interval.offsets.first - 1)
    return OffsetRange(interval.offsets.partition, first, interval.offsets.last)


def _act(connection: Connection, topic: TopicRow, offsets: Iterable[OffsetRange], act: _Act) -> None:
    intervals = touched(connection, topic, offsets)
    made = act(intervals)
    before = {interval.offsets: interval for interval in intervals}
    kept = {(interval.offsets.partition, interval.offsets.first) for interval in made}
    gone = [
        interval.offsets for interval in intervals if (interval.offsets.partition, interval.offsets.first) not in kept
    ]
    if gone:
        connection.execute(
            "DELETE FROM account USING unnest(%s::integer[], %s::bigint[]) AS gone(p, o)"
            " WHERE topic_id = %s AND partition = p AND first_offset = o",
            ([interval.partition for interval in gone], [interval.first for interval in gone], topic.id),
        )
    _put(connection, topic, [interval for interval in made if before.get(interval.offsets) != interval])


def _put(connection: Connection, topic: TopicRow, intervals: Sequence[Interval]) -> None:
    if len(intervals) == 1:
        connection.execute(_PUT, _values(topic, intervals[0]))
    elif intervals:
        with connection.cursor() as cursor:
            cursor.executemany(_PUT, [_values(topic, interval) for interval in intervals])


def _values(topic: TopicRow, interval: Interval) -> tuple[Any, ...]:
    return (
        topic.id,
        interval.offsets.partition,
        interval.offsets.first,
        interval.offsets.last,
        interval.expected,
        interval.digest,
        interval.erased,
        interval.removed,
        interval.lost,
        interval.retired,
        interval.is_gap,
        interval.is_unknown,
        interval.commit_id,
    )


def _interval(row: tuple[Any, ...]) -> Interval:
    partition, first, last, expected, digest, erased, removed, lost, retired, is_gap, is_unknown, commit_id = row
    return Interval(
        offsets=OffsetRange(partition, first, last),
        expected=expected,
        digest=digest,
        erased=erased,
        removed=removed,
        lost=lost,
        retired=retired,
        is_gap=is_gap,
        is_unknown=is_unknown,
        commit_id=commit_id,
    )
