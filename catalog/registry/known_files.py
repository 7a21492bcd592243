"""Files that the registry needs, by name (docs/stored-files.md).

Runs also claim unregistered uploads and renew claims. A file's age counts from the last renewal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from catalog.model import FileState, TopicRow, file_name
from catalog.offset_range import OffsetRange
from catalog.ranges.legal_holds import in_the_way
from catalog.registry import erased_offsets, file_rows, holds, pending_rewrites, trimming
from catalog.registry.postgres import Connection, Postgres

UPLOAD_CLAIM_DAYS: Final = 30
"""How long a claim on an upload is kept after its last renewal. After that its run is dead."""

_NEEDED: Final = frozenset({FileState.UPLOADED, FileState.COMMITTED})
_UPLOAD: Final = "upload"
_IS_MISSED: Final = f"""
state = 'replaced' AND {file_rows.IS_DATA} AND EXISTS (
    SELECT FROM files AS present WHERE present.topic_id = files.topic_id AND present.partition = files.partition
    AND present.state = 'committed' AND present.start_offset < files.end_offset
    AND present.end_offset > files.start_offset AND present.expected_rows > present.rows)
"""

_HAS_REMOVED: Final = """
state = 'replaced' AND EXISTS (
    SELECT FROM account WHERE topic_id = files.topic_id AND partition = files.partition
    AND first_offset < end_offset AND last_offset >= start_offset AND erased_rows + removed_rows + retired_rows > 0)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStates:
    """By name. `has_promise` if an open erasure promised files to readers.

    `missed` were replaced and have expected rows that successors lack; `held` were replaced and have removed records
    under a hold. `renewed` is in ms since 1970. `lacking` are ranges with missing rows, which files may have that a
    restored registry doesn't know.
    """

    states: Mapping[str, FileState] = field(default_factory=dict)
    rewriting: frozenset[str] = frozenset()
    missed: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    renewed: Mapping[str, int] = field(default_factory=dict)
    has_promise: bool = False
    lacking: tuple[OffsetRange, ...] = ()

    def needs(self, name: str, *, is_whole: bool = False) -> bool:
        """Whether a file waits, is committed, in an unresolved rewrite, or alone has held records.

        Also if a refill may need it, unless the table `is_whole`.
        """
        is_missed = name in self.missed and not is_whole
        is_kept = name in self.rewriting or is_missed or name in self.held
        return is_kept or self.states.get(name) in _NEEDED


class Standstill:
    """A topic without staging and new rewrites, and its files."""

    def __init__(self, postgres: Postgres, connection: Connection, topic: TopicRow, known: FileStates) -> None:
        self._postgres = postgres
        self._connection = connection
        self._topic = topic
        self.known = known

    def check(self) -> None:
        """Raise RegistryUnreachable if the topic's row lock is lost.

        Call it before each step, and every 30 seconds: the server ends idle transactions.
        """
        with self._postgres.in_our_words():
            self._connection.execute("SELECT 1")

    def forget_deleted(self, files: Mapping[str, str]) -> None:
        """Files are paths with ULIDs."""
        with self._postgres.in_our_words():
            trimming.forget_deleted(self._connection, self._topic, files)


def file_states(connection: Connection, topic: TopicRow, files: Mapping[str, str]) -> FileStates:
    rows = connection.execute(
        f"SELECT path, state, {_IS_MISSED}, partition, start_offset, end_offset, {_HAS_REMOVED} FROM files"  # noqa: S608 - no input
        " WHERE topic_id = %s AND path IS NOT NULL AND (path = ANY(%s) OR id = ANY(%s))",
        (topic.id, list(files), list(files.values())),
    )
    states: dict[str, FileState] = {}
    missed: set[str] = set()
    retained: set[str] = set()
    removed: set[str] = set()
    in_force = holds.active(connection, topic)
    for path, text, is_missed, partition, start, end, has_removed in rows:
        name, state = file_name(path), FileState(text)
        if is_missed:
            missed.add(name)
        if has_removed:
            removed.add(name)
        if has_removed and in_the_way(in_force, partition, start, end) is not None:
            retained.add(name)
        if states.get(name) not in _NEEDED:
            states[name] = state
    return FileStates(
        states=states,
        rewriting=frozenset(_rewriting(connection, topic)),
        missed=frozenset(missed),
        held=frozenset(retained),
        removed=frozenset(removed),
        renewed=renewed(connection, topic, [file_name(path) for path in files]),
        has_promise=erased_offsets.promised_seconds(connection, topic) > 0,
        lacking=_lacking(connection, topic),
    )


def _lacking(connection: Connection, topic: TopicRow) -> tuple[OffsetRange, ...]:
    ranges = connection.execute(
        "SELECT DISTINCT partition, start_offset, end_offset FROM files"
        " WHERE topic_id = %s AND state = 'committed' AND expected_rows > rows ORDER BY 1, 2, 3",
        (topic.id,),
    )
    return tuple(OffsetRange.half_open(partition, start, end) for partition, start, end in ranges)


def _rewriting(connection: Connection, topic: TopicRow) -> Sequence[str]:
    return [
        file_name(path)
        for rewrite in pending_rewrites.unfinished(connection, topic)
        for path in (*rewrite.old_paths, *rewrite.known_paths, *rewrite.new_paths)
    ]


def renew(connection: Connection, topic: TopicRow, names: Sequence[str]) -> None:
    """Claim unstaged files by name, or renew claims. Removes claims of dead runs."""
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) SELECT %s, %s, name, '{}' FROM unnest(%s::text[]) AS name"
        " ON CONFLICT (topic_id, key, name) DO UPDATE SET updated = now()",
        (topic.id, _UPLOAD, sorted(names)),
    )
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %s AND key = %s AND updated < now() - make_interval(days => %s)",
        (topic.id, _UPLOAD, UPLOAD_CLAIM_DAYS),
    )


def forget(connection: Connection, topic: TopicRow, names: Sequence[str]) -> None:
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %s AND key = %s AND name = ANY(%s)", (topic.id, _UPLOAD, list(names))
    )


def renewed(connection: Connection, topic: TopicRow, names: Sequence[str]) -> dict[str, int]:
    """In ms since 1970."""
    rows = connection.execute(
        "SELECT name, (extract(epoch FROM updated) * 1000)::bigint FROM metadata"
        " WHERE topic_id = %s AND key = %s AND name = ANY(%s)",
        (topic.id, _UPLOAD, list(names)),
    )
    return dict(rows.fetchall())
