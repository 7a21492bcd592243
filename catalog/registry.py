"""The registry: what the archiver remembers in Postgres, behind one door (DESIGN §8).

It is an index of the truth, which lies in the tables and the journal. Any method may raise `RegistryUnreachable`, after
which calling it again with the same arguments is safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self
from uuid import UUID

from catalog.model import FileState, PartitionOffset, Staged, StateCount, TopicRow, TranslatedRange


class Registry:
    """Postgres, for one process: a small pool of connections. Safe to share between threads; not across a fork."""

    def __init__(self, dsn: str, *, connections: int = 4) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        raise NotImplementedError

    def register(self, *, cluster_id: str, topic: str, topic_id: UUID | None, table: str) -> TopicRow:
        """The topic's row, made on first sight. TopicRecreated, TableTaken where it contradicts what is known."""
        raise NotImplementedError

    def topics(self) -> tuple[TopicRow, ...]:
        """Every topic, by cluster and name."""
        raise NotImplementedError

    def bind_table(self, topic: TopicRow, table_uuid: UUID) -> None:
        """Remember the table's UUID; LedgerBehind where another one is known."""
        raise NotImplementedError

    @contextmanager
    def lease(self, topic: TopicRow) -> Iterator[bool]:
        """True while this process alone works on the topic. Saves double work; correctness never rests on it."""
        raise NotImplementedError

    def assign(self, topic: TopicRow, *, key: Any, value: Any, options: Any, last_column_id: int = 0) -> Any:
        """`schema_mapping.field_ids.assign` under the row lock, persisted. Returns its Assignment."""
        raise NotImplementedError

    def row_mapping(self, topic: TopicRow, version: int) -> Any:
        """The RowMapping that wrote the rows of a schema version."""
        raise NotImplementedError

    def stage(
        self, topic: TopicRow, ranges: Sequence[TranslatedRange], *, table_offsets: Mapping[int, PartitionOffset]
    ) -> Staged:
        """Accept the ranges that continue their partition, reject the others, in one transaction under the row lock."""
        raise NotImplementedError

    def staged_ends(self, topic: TopicRow) -> dict[int, PartitionOffset]:
        """How far the accepted, not yet committed ranges reach, by partition. Ask before loading the table."""
        raise NotImplementedError

    def pending(self, topic: TopicRow) -> tuple[TranslatedRange, ...]:
        """Accepted, not yet committed: by partition and offset."""
        raise NotImplementedError

    def confirm(self, topic: TopicRow, range_ids: Sequence[str], *, commit_id: str) -> None:
        """Mark ranges as committed."""
        raise NotImplementedError

    def reject(self, topic: TopicRow, range_ids: Sequence[str], *, reason: str) -> None:
        """Mark accepted ranges as never to be committed."""
        raise NotImplementedError

    def counts(self, topic: TopicRow) -> dict[FileState, StateCount]:
        """Ranges, rows and bytes by state."""
        raise NotImplementedError
