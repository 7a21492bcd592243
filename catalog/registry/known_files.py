"""Which files the registry still needs, by name, whatever the table says (docs/stored-files.md).

A run also claims its uploads that nothing else in the registry names yet. It renews its claims while it works. The age
of a file counts from the last renewal, so the uploads of a dead run become orphans like any other. A claim is a row of
the registry's `metadata` under the key `upload`, by file name.

Functions take a connection inside a transaction. They are safe to call again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from catalog.model import FileState, TopicRow, file_name
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
    """What the registry knows of files, by name.

    `states` has the files of its ranges. `rewriting` are the files of rewrites with an unknown outcome. `missed` are
    replaced files with rows that the table should have and that their successors lack. `held` are replaced files with
    records that were removed and that a legal hold is on; `removed` are all with records that were removed. `renewed`
    is when a run last claimed an upload of its own, in ms since 1970. `has_promise` says that an erasure that isn't
    finished has promised readers of older snapshots their files.
    """

    states: Mapping[str, FileState] = field(default_factory=dict)
    rewriting: frozenset[str] = frozenset()
    missed: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    renewed: Mapping[str, int] = field(default_factory=dict)
    has_promise: bool = False

    def needs(self, name: str) -> bool:
        """Whether a file waits for a commit, is committed as far as is known, or is in an unresolved rewrite.

        Also whether it has rows that a refill may bring back, or records that a legal hold is on and no other file has.
        """
        is_kept = name in self.rewriting or name in self.missed or name in self.held
        return is_kept or self.states.get(name) in _NEEDED


class Standstill:
    """A topic in which nothing is staged and no rewrite begins meanwhile; and what is known of the files."""

    def __init__(self, postgres: Postgres, connection: Connection, topic: TopicRow, known: FileStates) -> None:
        self._postgres = postgres
        self._connection = connection
        self._topic = topic
        self.known = known

    def check(self) -> None:
        """Raise RegistryUnreachable if the server has ended the transaction that holds the topic's row lock.

        Call it before each step that needs the lock, and at least every half minute: the server ends idle transactions.
        """
        with self._postgres.in_our_words():
            self._connection.execute("SELECT 1")

    def forget_deleted(self, files: Mapping[str, str]) -> None:
        """Remove the rows of deleted files that were rejected or replaced: their paths, with their ULIDs."""
        with self._postgres.in_our_words():
            trimming.forget_deleted(self._connection, self._topic, files)


def file_states(connection: Connection, topic: TopicRow, files: Mapping[str, str]) -> FileStates:
    """What the registry knows of `files`: their paths, with the ULIDs in their names."""
    found = connection.execute(
        f"SELECT path, state, {_IS_MISSED}, partition, start_offset, end_offset, {_HAS_REMOVED} FROM files"  # noqa: S608 - no input
        " WHERE topic_id = %s AND path IS NOT NULL AND (path = ANY(%s) OR id = ANY(%s))",
        (topic.id, list(files), list(files.values())),
    )
    states: dict[str, FileState] = {}
    missed: set[str] = set()
    held: set[str] = set()
    removed: set[str] = set()
    in_force = holds.active(connection, topic)
    for path, text, is_missed, partition, start, end, has_removed in found:
        name, state = file_name(path), FileState(text)
        if is_missed:
            missed.add(name)
        if has_removed:
            removed.add(name)
        if has_removed and in_the_way(in_force, partition, start, end) is not None:
            held.add(name)
        if states.get(name) not in _NEEDED:
            states[name] = state
    return FileStates(
        states=states,
        rewriting=frozenset(_rewriting(connection, topic)),
        missed=frozenset(missed),
        held=frozenset(held),
        removed=frozenset(removed),
        renewed=renewed(connection, topic, [file_name(path) for path in files]),
        has_promise=erased_offsets.promised_seconds(connection, topic) > 0,
    )


def _rewriting(connection: Connection, topic: TopicRow) -> Sequence[str]:
    return [
        file_name(path)
        for rewrite in pending_rewrites.unfinished(connection, topic)
        for path in (*rewrite.old_paths, *rewrite.known_paths, *rewrite.new_paths)
    ]


def renew(connection: Connection, topic: TopicRow, names: Sequence[str]) -> None:
    """Claim files by name, or renew the claims on them.

    The files are not staged yet, and no rewrite has begun with them. Old claims of dead runs are removed.
    """
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
    """Remove the claims on these files."""
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %s AND key = %s AND name = ANY(%s)", (topic.id, _UPLOAD, list(names))
    )


def renewed(connection: Connection, topic: TopicRow, names: Sequence[str]) -> dict[str, int]:
    """When the claims on these files were last renewed, in ms since 1970. Files without a claim are left out."""
    found = connection.execute(
        "SELECT name, (extract(epoch FROM updated) * 1000)::bigint FROM metadata"
        " WHERE topic_id = %s AND key = %s AND name = ANY(%s)",
        (topic.id, _UPLOAD, list(names)),
    )
    return dict(found.fetchall())
