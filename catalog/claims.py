"""What the registry says of files by name: which it still needs, whatever the table says (docs/operations.md).

Functions take a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from catalog import rewrites, trimming
from catalog.model import FileState, TopicRow, file_name
from catalog.postgres import Connection, Postgres

UPLOAD_CLAIM_DAYS: Final = 30
"""How long a claim on an upload is kept after it was last renewed: by then the run that made it is dead."""

_NEEDED: Final = frozenset({FileState.UPLOADED, FileState.COMMITTED})
_UPLOAD: Final = "upload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """States of files by name, those it doesn't know left out, and the names that rewrites in doubt are about.

    `renewed` is when runs that are under way said that they want an upload of theirs, in ms since 1970.
    """

    states: Mapping[str, FileState] = field(default_factory=dict)
    rewriting: frozenset[str] = frozenset()
    renewed: Mapping[str, int] = field(default_factory=dict)

    def needs(self, name: str) -> bool:
        """Whether a file waits for a commit, is in the table as far as is known, or is part of a rewrite in doubt."""
        return name in self.rewriting or self.states.get(name) in _NEEDED


class Standstill:
    """A topic while nothing is staged in it and no rewrite begun, and what is known of the files asked about."""

    def __init__(self, postgres: Postgres, connection: Connection, topic: TopicRow, claims: Claims) -> None:
        self._postgres = postgres
        self._connection = connection
        self._topic = topic
        self.claims = claims

    def check(self) -> None:
        """RegistryUnreachable where it is over: the server ended the transaction that holds the topic's row.

        Ask before each step that must not meet others, and within half a minute of the last time: the server ends
        transactions that are idle.
        """
        with self._postgres.in_our_words():
            self._connection.execute("SELECT 1")

    def forget_deleted(self, files: Mapping[str, str]) -> None:
        """Have the registry know rejected and replaced files no longer that were deleted: paths, with their ULIDs."""
        with self._postgres.in_our_words():
            trimming.forget_deleted(self._connection, self._topic, files)


def claims(connection: Connection, topic: TopicRow, files: Mapping[str, str]) -> Claims:
    """What is known of `files`: their paths, with the ULIDs in their names."""
    found = connection.execute(
        "SELECT path, state FROM files WHERE topic_id = %s AND path IS NOT NULL AND (path = ANY(%s) OR id = ANY(%s))",
        (topic.id, list(files), list(files.values())),
    )
    states: dict[str, FileState] = {}
    for path, text in found:
        name, state = file_name(path), FileState(text)
        if states.get(name) not in _NEEDED:
            states[name] = state
    return Claims(
        states=states,
        rewriting=frozenset(_rewriting(connection, topic)),
        renewed=renewed(connection, topic, [file_name(path) for path in files]),
    )


def _rewriting(connection: Connection, topic: TopicRow) -> Sequence[str]:
    return [
        file_name(path)
        for rewrite in rewrites.unfinished(connection, topic)
        for each in rewrite.replacements
        for path in (each.path, each.file.path)
    ]


def renew(connection: Connection, topic: TopicRow, names: Sequence[str]) -> None:
    """Claim files of these names as of now; claims of runs that are long dead go."""
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
    """Claim files of these names no longer."""
    connection.execute(
        "DELETE FROM metadata WHERE topic_id = %s AND key = %s AND name = ANY(%s)", (topic.id, _UPLOAD, list(names))
    )


def renewed(connection: Connection, topic: TopicRow, names: Sequence[str]) -> dict[str, int]:
    """When those of these files that are claimed were last so, in ms since 1970."""
    found = connection.execute(
        "SELECT name, (extract(epoch FROM updated) * 1000)::bigint FROM metadata"
        " WHERE topic_id = %s AND key = %s AND name = ANY(%s)",
        (topic.id, _UPLOAD, list(names)),
    )
    return dict(found.fetchall())
