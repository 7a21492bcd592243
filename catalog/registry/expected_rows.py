"""Expected rows, rows missing at the last check, and accepted losses.

Columns of `files`; the check is in `metadata` under `checked`. Idempotent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from psycopg.types.json import Jsonb

from catalog.account.interval import accepted_rows as rows_accepted
from catalog.digests import add_digests
from catalog.model import DataFileInfo, TopicRow, TranslatedRange
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import Acceptance, AcceptedSpans, Checked, ExpectedFile, ExpectedRange, GoneRows
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import accepted_rows, account_rows, file_rows, topics
from catalog.registry.postgres import Connection

_KEY = "checked"
_NAME = "rows"


def expected_ranges(connection: Connection, topic: TopicRow) -> tuple[ExpectedRange, ...]:
    """Call it before loading the table, which then has every range."""
    cursor = connection.execute(
        "SELECT coalesce(range_id, id), partition, start_offset, end_offset, path, coalesce(expected_rows, rows), rows,"
        " digest, erased_rows + lost_rows + retired_rows FROM files WHERE topic_id = %s AND state = 'committed'"
        " AND (path IS NOT NULL OR expected_rows IS NOT NULL) ORDER BY partition, start_offset, part",
        (topic.id,),
    )
    ranges = (_expected_range(list(rows)) for _, rows in groupby(cursor, key=lambda row: row[:4]))
    expected = tuple(range_ for range_ in ranges if range_.rows > 0)
    acceptances = accepted_rows.load(connection, topic)
    if not acceptances:
        return expected
    spans = AcceptedSpans(acceptances)
    placed = {range_.id: OffsetRange.of_range(range_) for range_ in expected if spans.inside(range_)[0]}
    account = account_rows.touched(connection, topic, placed.values())
    return tuple(
        spans.of(range_, most=rows_accepted(account, placed[range_.id])) if range_.id in placed else range_
        for range_ in expected
    )


def _expected_range(rows: Sequence[tuple[Any, ...]]) -> ExpectedRange:
    range_id, partition, start, end = rows[0][:4]
    with_file = [row for row in rows if row[4] is not None]
    return ExpectedRange(
        id=range_id,
        partition=partition,
        start_offset=start,
        end_offset=end,
        files=tuple(ExpectedFile(path=row[4], rows=row[5]) for row in with_file),
        rows=sum(row[5] for row in rows),
        file_rows=sum(row[6] for row in rows),
        digest=add_digests(row[7] for row in with_file),
        gone=sum(row[8] for row in rows),
    )


def committed_spans(connection: Connection, topic: TopicRow, partition: int, start: int) -> tuple[tuple[int, int], ...]:
    """Accepted ranges from `start` on, with or without files."""
    rows = connection.execute(
        "SELECT start_offset, end_offset FROM files WHERE topic_id = %s AND partition = %s"
        " AND state IN ('uploaded', 'committed') AND end_offset > %s ORDER BY start_offset",
        (topic.id, partition, start),
    )
    return tuple(rows.fetchall())


def all_committed_spans(
    connection: Connection, topic: TopicRow, starts: Mapping[int, int]
) -> dict[int, tuple[tuple[int, int], ...]]:
    return {partition: committed_spans(connection, topic, partition, start) for partition, start in starts.items()}


_KEPT = """
SELECT present.id, was.path, was.file FROM files AS present JOIN files AS was ON was.topic_id = present.topic_id
AND was.partition = present.partition AND was.start_offset < present.end_offset
AND was.end_offset > present.start_offset AND was.state IN ('committed', 'replaced') AND was.file IS NOT NULL
WHERE present.topic_id = %s AND present.id = ANY(%s) AND present.state = 'committed'
ORDER BY present.id, was.state, was.id DESC
"""


def kept_files(
    connection: Connection, topic: TopicRow, range_ids: Sequence[str]
) -> dict[str, tuple[DataFileInfo, ...]]:
    """Current files of ranges, then earlier ones, newest first.

    Rows that a rewrite missed stay expected, and replaced files have them.
    """
    kept: dict[str, dict[str, DataFileInfo]] = {}
    for range_id, path, file in connection.execute(_KEPT, (topic.id, list(range_ids))):
        kept.setdefault(range_id, {}).setdefault(path, DataFileInfo.from_json(file))
    return {range_id: tuple(files.values()) for range_id, files in kept.items()}


def gone(connection: Connection, topic: TopicRow) -> GoneRows:
    row = connection.execute(
        "SELECT coalesce(sum(erased_rows), 0)::bigint, coalesce(sum(lost_rows), 0)::bigint,"
        " coalesce(sum(retired_rows), 0)::bigint FROM files WHERE topic_id = %s AND state = 'committed'",
        (topic.id,),
    ).fetchone()
    return GoneRows(erased=row[0], lost=row[1], retired=row[2]) if row else GoneRows()


def checked(connection: Connection, topic: TopicRow) -> Checked | None:
    row = connection.execute(
        "SELECT value FROM metadata WHERE topic_id = %s AND key = %s AND name = %s AND NOT deleted",
        (topic.id, _KEY, _NAME),
    ).fetchone()
    return None if row is None else Checked.from_json(row[0])


def last_checked(connection: Connection, topic: TopicRow) -> Checked | None:
    """The last check even if forgotten: altered and uncompared rows still count."""
    row = connection.execute(
        "SELECT value FROM metadata WHERE topic_id = %s AND key = %s AND name = %s", (topic.id, _KEY, _NAME)
    ).fetchone()
    return None if row is None else Checked.from_json(row[0])


def replace_checked(connection: Connection, topic: TopicRow, old: Checked, new: Checked) -> bool:
    """False if the last check isn't `old`."""
    done = connection.execute(
        "UPDATE metadata SET value = %s, updated = now()"
        " WHERE topic_id = %s AND key = %s AND name = %s AND NOT deleted AND value = %s",
        (Jsonb(new.to_json()), topic.id, _KEY, _NAME, Jsonb(old.to_json())),
    )
    return done.rowcount > 0


def note_checked(connection: Connection, topic: TopicRow, found: Checked) -> None:
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (topic_id, key, name) DO UPDATE"
        " SET value = excluded.value, deleted = false, updated = now()",
        (topic.id, _KEY, _NAME, Jsonb(found.to_json())),
    )


def forget_checked(connection: Connection, topic: TopicRow) -> None:
    """Search everything next time: the registry learned of unknown ranges in the table.

    `last_checked` still returns it.
    """
    connection.execute(
        "UPDATE metadata SET deleted = true, updated = now() WHERE topic_id = %s AND key = %s", (topic.id, _KEY)
    )


def record_refill(
    connection: Connection,
    topic: TopicRow,
    *,
    replaced: Mapping[str, Sequence[TranslatedRange]],
    accepted: Sequence[Acceptance],
    commit_id: str,
    whole: Sequence[OffsetRange] = (),
) -> None:
    """Record ranges (by id) in other files, and rows that stay gone. Forgets the last check.

    `whole` offsets came back entirely.
    """
    topics.lock(connection, topic)
    for range_id, ranges in replaced.items():
        done = connection.execute(
            "UPDATE files SET state = 'replaced', reason = %(reason)s, replaced_by = %(commit)s"  # noqa: S608 - no input
            f" WHERE topic_id = %(topic)s AND {file_rows.IDS} AND state = 'committed'",
            {"reason": f"refill: commit {commit_id}", "commit": commit_id, "topic": topic.id, "ids": [range_id]},
        )
        if done.rowcount:
            fresh = [StoredRange.of(range_, commit_id=commit_id) for range_ in ranges]
            file_rows.put_committed(connection, topic, fresh)
            account_rows.record(connection, topic, fresh)
    for acceptance in accepted:
        _accept(connection, topic, acceptance)
    accepted_rows.keep(
        connection, topic, (acceptance.place for acceptance in accepted if acceptance.place), commit_id=commit_id
    )
    before = last_checked(connection, topic)
    if before is not None and whole:
        note_checked(connection, topic, before.without(whole))
    forget_checked(connection, topic)


def _accept(connection: Connection, topic: TopicRow, accepted: Acceptance) -> None:
    condition = f"state = 'committed' AND ({file_rows.IDS} OR (partition = %(partition)s AND start_offset = %(start)s))"
    values = {"ids": [accepted.range_id], "partition": accepted.partition, "start": accepted.start_offset}
    for loaded in file_rows.held(connection, topic, condition, **values):
        if accepted.is_of(loaded.range):
            less = loaded.range.without(left=accepted.left, erased=accepted.erased, lost=accepted.lost)
            file_rows.put_committed(connection, topic, [less], known={file.id for file in less.files})
            account_rows.accept(connection, topic, less, accepted)
            return
