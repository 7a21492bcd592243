"""The registry: what the archiver remembers in Postgres, behind one door (docs/operations.md).

It is an index of the truth, which lies in the tables and the journal. Any method may raise `RegistryUnreachable`, after
which calling it again with the same arguments is safe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self
from uuid import UUID

from catalog import (
    expected,
    files,
    history,
    journaling,
    known_tables,
    ledger,
    missing,
    registered,
    restoring,
    rewrites,
    starts,
    topics,
    trimming,
    uploads,
)
from catalog.archive_table import ArchiveTable
from catalog.claims import Claims, Standstill, claims
from catalog.holes import Acceptance, Checked, ExpectedRange, GoneRows
from catalog.known_tables import KnownTable
from catalog.leases import Leases
from catalog.model import FileState, PartitionOffset, Staged, StateCount, TopicRow, TranslatedRange
from catalog.postgres import Postgres
from catalog.registered import RememberedSchemas
from catalog.restoring import Restored
from catalog.rewrite import Rewrite
from catalog.settle import Settled
from catalog.trimming import Trimmed
from catalog.versions import VersionRecord
from schema_mapping.descriptors import MessageSchema
from schema_mapping.field_ids import Assignment
from schema_mapping.ledger import LedgerState
from schema_mapping.options import MappingOptions
from schema_mapping.row import PartitionSource, RowMapping


class Registry:
    """The registry's database, migrated when opened. Safe to share between threads, not across a fork."""

    def __init__(self, dsn: str, *, connections: int = 4) -> None:
        self._postgres = Postgres(dsn, connections=connections)
        try:
            self._postgres.migrate()
        except BaseException:
            self._postgres.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._postgres.close()

    def register(self, *, cluster_id: str, topic: str, topic_id: UUID | None, table: str) -> TopicRow:
        """The topic's row, made on first sight. TopicRecreated, TableTaken where it contradicts what is known."""
        with self._postgres.transaction() as connection:
            return topics.register(connection, cluster_id=cluster_id, topic=topic, topic_id=topic_id, table=table)

    def find(self, *, cluster_id: str, topic: str) -> TopicRow | None:
        """The topic's row, None where it was never registered."""
        with self._postgres.transaction() as connection:
            return topics.find(connection, cluster_id=cluster_id, topic=topic)

    def topics(self) -> tuple[TopicRow, ...]:
        """Every topic, by cluster and name."""
        with self._postgres.transaction() as connection:
            return topics.every(connection)

    @contextmanager
    def leases(self) -> Iterator[Leases]:
        """Leases that a run takes on its topics, held until the block ends; one connection, whatever their number.

        They save double work; correctness never rests on them. The server takes them back when the process dies.
        """
        with self._postgres.session() as connection:
            yield Leases(self._postgres, connection)

    @contextmanager
    def lease(self, topic: TopicRow) -> Iterator[bool]:
        """True inside the block while no other process holds the topic; `leases` for one topic."""
        with self.leases() as leases:
            yield not leases.take((topic,))

    def assign(
        self,
        topic: TopicRow,
        *,
        key: MessageSchema | None,
        value: MessageSchema | None,
        table: ArchiveTable | None,
        options: MappingOptions | None = None,
        partition_source: PartitionSource = "nested",
    ) -> Assignment:
        """`schema_mapping.field_ids.assign`, its ledger kept under the topic's row lock: processes agree.

        `table` is what the catalog has for the topic now, None where it has none. RegistryBehind where the registry
        knows another table, or less than it. Keep the outcome for the files' mapping; `SchemaChange.of` it for commits.
        """
        with self._postgres.transaction() as connection:
            return ledger.assign_columns(
                connection,
                topic,
                key=key,
                value=value,
                options=options,
                partition_source=partition_source,
                table=table,
            )

    def ledger(self, topic: TopicRow) -> LedgerState:
        """All that is remembered of the topic's columns and schema versions."""
        with self._postgres.transaction() as connection:
            return ledger.load(connection, topic)

    def history(self, topic: TopicRow) -> tuple[VersionRecord, ...]:
        """The topic's schema versions, ascending, with what each changed."""
        with self._postgres.transaction() as connection:
            return history.load(connection, topic)

    def row_mapping(self, topic: TopicRow, version: int) -> RowMapping:
        """The mapping that wrote the rows of a schema version."""
        with self._postgres.transaction() as connection:
            return ledger.row_mapping(connection, topic, version)

    def remembered_schemas(self, topic: TopicRow, registry: str) -> RememberedSchemas:
        """What the schema registry of this name has said of the topic's schemas."""
        with self._postgres.transaction() as connection:
            return registered.load(connection, topic, registry)

    def remember_schemas(self, topic: TopicRow, registry: str, news: RememberedSchemas) -> None:
        """Keep what a schema registry said, for times when it is down."""
        with self._postgres.transaction() as connection:
            registered.remember(connection, topic, registry, news)

    def starts(
        self, topic: TopicRow, decided: Mapping[int, int] | None = None, *, pending: Mapping[int, int] | None = None
    ) -> dict[int, int]:
        """Where archiving of each partition begins; `decided` is kept for the partitions that have no start yet.

        `pending` are partitions without a leader to ask, with the leader epoch that had ended by then; kept together.
        """
        with self._postgres.transaction() as connection:
            if pending:
                starts.remember(connection, topic, pending, key="start_pending")
            return starts.remember(connection, topic, decided or {}, key="start")

    def pending_starts(self, topic: TopicRow) -> dict[int, int]:
        """The leader epochs, by partition, that had ended when a start was to be decided and nobody could be asked."""
        with self._postgres.transaction() as connection:
            return starts.remember(connection, topic, {}, key="start_pending")

    def first_log_starts(self, topic: TopicRow, seen: Mapping[int, int] | None = None) -> dict[int, int]:
        """Where logs began when they were first looked at; `seen` is kept for the partitions that have none yet."""
        with self._postgres.transaction() as connection:
            return starts.remember(connection, topic, seen or {}, key="first_log_start")

    def stage(
        self, topic: TopicRow, ranges: Sequence[TranslatedRange], *, table_offsets: Mapping[int, PartitionOffset]
    ) -> Staged:
        """Accept the ranges that continue their partition, reject the others; together, under the topic's row lock.

        A partition's end is the furthest of its accepted ranges and of `table_offsets`; the first range of a partition
        that neither knows may start anywhere.
        """
        with self._postgres.transaction() as connection:
            return files.stage(connection, topic, ranges, table_offsets=table_offsets)

    def staged_ends(self, topic: TopicRow) -> dict[int, PartitionOffset]:
        """How far the ranges that wait for a commit reach, by partition.

        Ask before loading the table: a range that is committed in between is then in the table's offsets.
        """
        with self._postgres.transaction() as connection:
            return files.staged_ends(connection, topic)

    def pending(self, topic: TopicRow) -> tuple[TranslatedRange, ...]:
        """The ranges that wait for a commit, by partition and offset."""
        with self._postgres.transaction() as connection:
            return files.pending(connection, topic)

    def confirm(self, topic: TopicRow, range_ids: Sequence[str], *, commit_id: str | None) -> None:
        """Mark ranges as committed; `commit_id` is None where the snapshot that brought them has expired."""
        with self._postgres.transaction() as connection:
            files.confirm(connection, topic, range_ids, commit_id=commit_id)

    def reject(self, topic: TopicRow, range_ids: Sequence[str], *, reason: str) -> None:
        """Mark waiting ranges as never to be committed. What follows them in their partition can't be either."""
        with self._postgres.transaction() as connection:
            files.reject(connection, topic, range_ids, reason=reason)

    def reject_missing(self, topic: TopicRow, range_ids: Sequence[str], *, reason: str) -> None:
        """Mark waiting ranges as rejected until their objects are in the store again."""
        with self._postgres.transaction() as connection:
            missing.reject(connection, topic, range_ids, reason=reason)

    def missing(
        self, topic: TopicRow, *, table_offsets: Mapping[int, PartitionOffset] | None = None
    ) -> tuple[TranslatedRange, ...]:
        """Ranges rejected for a missing object whose offsets no other range has yet, by partition and offset."""
        with self._postgres.transaction() as connection:
            return missing.load(connection, topic, table_offsets=table_offsets or {})

    def take_up(
        self, topic: TopicRow, range_ids: Collection[str], *, table_offsets: Mapping[int, PartitionOffset]
    ) -> tuple[TranslatedRange, ...]:
        """Let those of the missing ranges that continue their partitions wait for a commit again; gives them."""
        with self._postgres.transaction() as connection:
            return missing.take_up(connection, topic, range_ids, table_offsets=table_offsets)

    def record(self, topic: TopicRow, settled: Settled) -> None:
        """Confirm what landed and reject what was refused, together."""
        with self._postgres.transaction() as connection:
            files.record(connection, topic, settled)
            if settled.landed:
                expected.forget_checked(connection, topic)

    def remember_table(self, topic: TopicRow, known: KnownTable) -> None:
        """Keep the topic's table as it was just loaded."""
        with self._postgres.transaction() as connection:
            known_tables.remember(connection, topic, known)

    def known_table(self, topic: TopicRow) -> KnownTable | None:
        """The topic's table as it was last loaded; None where it never was."""
        with self._postgres.transaction() as connection:
            return known_tables.recall(connection, topic)

    def accepted_ends(self, topic: TopicRow) -> dict[int, PartitionOffset]:
        """How far accepted ranges reach, committed or not, by partition: for when the table can't be asked."""
        with self._postgres.transaction() as connection:
            return files.accepted_ends(connection, topic)

    def journaled(self, topic: TopicRow, journal: str) -> int:
        """The newest schema version that the journal at this place has; 0 where it has none."""
        with self._postgres.transaction() as connection:
            return journaling.journaled(connection, topic, journal)

    def note_journaled(self, topic: TopicRow, journal: str, version: int) -> None:
        """Note that the journal has all schema versions up to this one."""
        with self._postgres.transaction() as connection:
            journaling.note(connection, topic, journal, version)

    def begin_rewrite(self, topic: TopicRow, rewrite: Rewrite) -> None:
        """Remember a rewrite before it is committed, so that its fate can be found out whatever happens."""
        with self._postgres.transaction() as connection:
            rewrites.begin(connection, topic, rewrite)

    def finish_rewrite(self, topic: TopicRow, rewrite: Rewrite) -> None:
        """Put the new files in the place of the old ones: the rewrite is in the table."""
        with self._postgres.transaction() as connection:
            rewrites.finish(connection, topic, rewrite)

    def abandon_rewrite(self, topic: TopicRow, rewrite: Rewrite) -> None:
        """Forget a rewrite that will never be in the table."""
        with self._postgres.transaction() as connection:
            rewrites.forget(connection, topic, rewrite)

    def unfinished_rewrites(self, topic: TopicRow) -> tuple[Rewrite, ...]:
        """Rewrites that were begun and whose fate is not recorded, the oldest first."""
        with self._postgres.transaction() as connection:
            return rewrites.unfinished(connection, topic)

    def check_table(self, topic: TopicRow, table: ArchiveTable) -> None:
        """RegistryBehind where this is not the table the registry knows, or one that is further than the registry."""
        with self._postgres.transaction() as connection:
            ledger.check_table(connection, topic, table, ledger.load(connection, topic))

    @contextmanager
    def nothing_staged(self, topic: TopicRow, files: Mapping[str, str]) -> Iterator[Standstill]:
        """What is known of `files` (paths, with the ULIDs in their names); inside the block nothing is staged.

        Nor is a rewrite begun, as long as the standstill's `check` passes. Keep the block short: others wait for it,
        and after a minute they give up.
        """
        with self._postgres.transaction() as connection:
            topics.lock(connection, topic)
            yield Standstill(self._postgres, connection, topic, claims(connection, topic, files))

    def claims(self, topic: TopicRow, files: Mapping[str, str]) -> Claims:
        """What is known of `files`: paths, with the ULIDs in their names."""
        with self._postgres.transaction() as connection:
            return claims(connection, topic, files)

    def claim_uploads(self, topic: TopicRow, names: Sequence[str]) -> None:
        """Have these files, by name, count as young from now on, though nothing is staged or begun with them yet."""
        with self._postgres.transaction() as connection:
            uploads.renew(connection, topic, names)

    def forget_uploads(self, topic: TopicRow, names: Sequence[str]) -> None:
        """Claim these files no longer."""
        with self._postgres.transaction() as connection:
            uploads.forget(connection, topic, names)

    def trim(self, topic: TopicRow, *, days: float = trimming.KEPT_DAYS) -> Trimmed:
        """Leave out what ranges that were committed so many days ago need no longer; a batch of the oldest."""
        with self._postgres.transaction() as connection:
            return trimming.trim(connection, topic, days=days)

    def lost_offsets(self, topic: TopicRow) -> int:
        """How many offsets the log lost before they were archived, as was accepted (`--accept-gap`)."""
        with self._postgres.transaction() as connection:
            return files.lost_offsets(connection, topic)

    def expected(self, topic: TopicRow) -> tuple[ExpectedRange, ...]:
        """The committed ranges that the table has to have rows of, by partition and offset.

        Ask before loading the table: what is committed in between is then in the table.
        """
        with self._postgres.transaction() as connection:
            return expected.expected(connection, topic)

    def ranges(self, topic: TopicRow, range_ids: Sequence[str]) -> tuple[TranslatedRange, ...]:
        """The ranges with these ids, in their order; RegistryError where the registry doesn't have one."""
        with self._postgres.transaction() as connection:
            return tuple(files.load(connection, topic, each) for each in range_ids)

    def committed_ends(self, topic: TopicRow) -> dict[int, PartitionOffset]:
        """How far committed ranges reach, by partition; a table loaded after this call is no less far."""
        with self._postgres.transaction() as connection:
            return files.committed_ends(connection, topic)

    def committed_spans(self, topic: TopicRow, starts: Mapping[int, int]) -> dict[int, tuple[tuple[int, int], ...]]:
        """The offsets that committed or waiting ranges cover, by partition, from these starts on."""
        with self._postgres.transaction() as connection:
            return {
                partition: expected.committed_spans(connection, topic, partition, start)
                for partition, start in starts.items()
            }

    def checked(self, topic: TopicRow) -> Checked | None:
        """What the last look for missing rows found; None where there was none."""
        with self._postgres.transaction() as connection:
            return expected.checked(connection, topic)

    def note_checked(self, topic: TopicRow, found: Checked) -> None:
        """Remember what a look for missing rows found."""
        with self._postgres.transaction() as connection:
            expected.note_checked(connection, topic, found)

    def gone_rows(self, topic: TopicRow) -> GoneRows:
        """How many archived rows the table doesn't have any more, as was accepted."""
        with self._postgres.transaction() as connection:
            return expected.gone(connection, topic)

    def record_refill(
        self,
        topic: TopicRow,
        *,
        replaced: Mapping[str, Sequence[TranslatedRange]],
        accepted: Sequence[Acceptance],
        commit_id: str,
    ) -> None:
        """Keep what a refill did: ranges (by id) that came back in other files, and rows that stay gone."""
        with self._postgres.transaction() as connection:
            expected.record_refill(connection, topic, replaced=replaced, accepted=accepted, commit_id=commit_id)

    def restore(
        self,
        topic: TopicRow,
        *,
        table_uuid: UUID,
        state: LedgerState,
        records: Sequence[VersionRecord],
        ranges: Sequence[tuple[TranslatedRange, str | None]],
    ) -> Restored:
        """Add what is missing of a topic whose table has this UUID; RegistryBehind where the registry knows another."""
        with self._postgres.transaction() as connection:
            topics.check_table(connection, topic, table_uuid)
            restored = restoring.restore(connection, topic, state=state, records=records, ranges=ranges)
            if restored.ranges:
                expected.forget_checked(connection, topic)
            return restored

    def counts(self, topic: TopicRow) -> dict[FileState, StateCount]:
        """Ranges, rows and bytes by state; every state is there."""
        with self._postgres.transaction() as connection:
            return files.counts(connection, topic)
