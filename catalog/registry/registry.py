"""The registry: what the archiver remembers in Postgres (docs/stored-files.md).

It is an index of the truth, which lies in the tables and the journal. Each part of it has its own calls, and each call
is one transaction, or a single statement, which is one by itself. Any call may raise `RegistryUnreachable`; it is then
safe to call again with the same arguments.

Each part has a module with its functions. A function takes a connection, so that several can share a transaction.
`in_transaction` turns a function into a method; `in_statements` does it for a function whose one statement, or whose
reading, needs no lock: that saves the server and the driver two requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self
from uuid import UUID

from catalog.account.interval import Interval
from catalog.iceberg.settle import Settled
from catalog.model import TopicRow, VersionRecord
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import (
    account_rows,
    audit_chains,
    chores,
    erased_offsets,
    expected_rows,
    files,
    first_offsets,
    group_coordinators,
    group_offsets,
    held_ranges,
    history,
    holds,
    known_files,
    last_known,
    ledger,
    ledger_rows,
    missing_objects,
    overview,
    partition_starts,
    pending_rewrites,
    removable,
    restoring,
    retention_consents,
    rewriting_runs,
    schema_changes,
    serve_nodes,
    served_users,
    topics,
    trimming,
)
from catalog.registry.leases import Leases
from catalog.registry.parts import Part, in_statements, in_transaction
from catalog.registry.postgres import Postgres
from catalog.registry.restoring import Restored, Retained
from schema_mapping.columns.ledger import LedgerState


class TopicReader(Part):
    """The topics of the registry, for reading."""

    find = in_statements(topics.find)
    every = in_statements(topics.every)
    owners = in_statements(topics.owners)
    check_identity = in_statements(topics.check_identity)
    overview = in_transaction(overview.of_topics)


class Topics(TopicReader):
    """The topics of the registry, each with its table."""

    register = in_transaction(topics.register)


class SchemaChanges(Part):
    """Schema changes that wait for approval, and approvals."""

    of_topics = in_statements(schema_changes.of_topics)
    note_waiting = in_transaction(schema_changes.note_waiting)
    forget_waiting = in_statements(schema_changes.forget_waiting)
    approve = in_statements(schema_changes.approve)


class LedgerReader(Part):
    """The columns and schema versions of topics, for reading."""

    load = in_transaction(ledger_rows.load)
    row_mapping = in_statements(ledger_rows.row_mapping)
    journaled = in_statements(history.journaled)
    history = in_statements(history.load)


class Ledger(LedgerReader):
    """The columns and schema versions of topics. Schema changes extend them. Also: which versions journals have."""

    assign = in_transaction(ledger.assign_columns)
    read_together = in_transaction(ledger_rows.read_together)
    check_table = in_transaction(ledger.check_loaded_table)
    note_journaled = in_statements(history.note_journaled)


class PartitionStartsReader(Part):
    """The first offset of each partition, for reading."""

    known = in_transaction(partition_starts.known)


class PartitionStarts(PartitionStartsReader):
    """The first offset of each partition, as it was first decided."""

    decide = in_transaction(partition_starts.decide)
    pending = in_transaction(partition_starts.pending)
    first_log_starts = in_transaction(partition_starts.first_log_starts)


class RangeReader(Part):
    """The ranges in tables, those that wait for a commit, and unfinished rewrites, for reading."""

    committed = in_statements(files.committed)
    pending = in_statements(files.pending)
    unfinished = in_transaction(pending_rewrites.unfinished)
    both_books = in_transaction(account_rows.both_books)


class Files(Part):
    """Translated ranges and their files, from the fence to the table."""

    stage = in_transaction(files.stage)
    keep_rejected = in_transaction(files.keep_rejected)
    pending = in_statements(files.pending)
    confirm = in_transaction(files.confirm)
    reject = in_transaction(files.reject)
    ranges = in_statements(files.load_all)
    topics_with_staged = in_statements(files.topics_with_staged)
    staged_ends = in_statements(files.staged_ends)
    accepted_ends = in_statements(files.accepted_ends)
    committed_ends = in_statements(files.committed_ends)
    last_version = in_statements(files.last_version)
    counts = in_statements(files.counts)
    lost_offsets = in_statements(files.lost_offsets)
    newest_commit = in_statements(files.newest_commit)
    lost_ranges = in_statements(files.lost_ranges)
    held_ranges = in_transaction(held_ranges.held_ranges)
    trim = in_transaction(trimming.trim)

    def record(self, topic: TopicRow, settled: Settled) -> None:
        """Confirm the ranges that landed and reject those that were refused, in one transaction."""
        if not (settled.landed or settled.refused):
            return
        with self._postgres.transaction() as connection:
            files.record(connection, topic, settled)
            if settled.landed:
                expected_rows.forget_checked(connection, topic)


class MissingObjects(Part):
    """Staged ranges whose objects were missing when they were to be committed."""

    reject = in_transaction(missing_objects.reject)
    load = in_statements(missing_objects.load)
    take_up = in_transaction(missing_objects.take_up)


class ExpectedRows(Part):
    """The rows a table must have: those missing at the last check, and those accepted to be gone."""

    expected_ranges = in_statements(expected_rows.expected_ranges)
    kept_files = in_statements(expected_rows.kept_files)
    account = in_statements(account_rows.touched)
    committed_spans = in_transaction(expected_rows.all_committed_spans)
    checked = in_statements(expected_rows.checked)
    last_checked = in_statements(expected_rows.last_checked)
    note_checked = in_statements(expected_rows.note_checked)
    replace_checked = in_statements(expected_rows.replace_checked)
    gone = in_statements(expected_rows.gone)
    record_refill = in_transaction(expected_rows.record_refill)


class PendingRewrites(Part):
    """Rewrites of data files, remembered from before their commit until their outcome is known."""

    begin = in_transaction(pending_rewrites.begin)
    finish = in_transaction(pending_rewrites.finish)
    abandon = in_transaction(pending_rewrites.forget)
    unfinished = in_transaction(pending_rewrites.unfinished)
    may_go_on = in_transaction(pending_rewrites.may_go_on)
    begin_to_end = in_transaction(pending_rewrites.begin_to_end)
    note_last_attempt = in_transaction(pending_rewrites.note_last_attempt)
    ending = in_transaction(pending_rewrites.ending)


class Retention(Part):
    """Where partitions begin, and the ranges that may be taken out of a table."""

    first_offsets = in_transaction(first_offsets.load)
    ranges = in_transaction(removable.ranges)
    removed_files = in_transaction(removable.removed_files)
    retired_files = in_transaction(removable.retired_files)
    now = in_transaction(removable.now)


class Holds(Part):
    """Legal holds on a topic's records."""

    load = in_transaction(holds.load)
    active = in_transaction(holds.active)
    keep = in_transaction(holds.keep)
    named = in_transaction(holds.named)


class RetentionConsents(Part):
    """Consent to retire within a day, or more than half of a topic."""

    of_topics = in_transaction(retention_consents.of_topics)
    request = in_transaction(retention_consents.request)
    give = in_transaction(retention_consents.give)
    withdraw_requests = in_transaction(retention_consents.withdraw_requests)


class Erasures(Part):
    """Records that were erased on purpose, by their offsets."""

    offsets = in_transaction(erased_offsets.load)
    files = in_transaction(erased_offsets.files)
    note_files = in_transaction(erased_offsets.note_files)
    begin = in_transaction(erased_offsets.begin_erasure)
    end_search = in_transaction(erased_offsets.end_search)
    note_searched = in_transaction(erased_offsets.note_searched)
    note_waiting = in_transaction(erased_offsets.note_waiting)
    finish = in_transaction(erased_offsets.finish_erasures)
    unfinished = in_transaction(erased_offsets.open_erasures)
    promised_seconds = in_transaction(erased_offsets.promised_seconds)


class KnownFiles(Part):
    """Which files the registry needs, whatever the table says; and the claims of runs on their uploads."""

    file_states = in_transaction(known_files.file_states)
    renew = in_transaction(known_files.renew)
    forget = in_transaction(known_files.forget)
    ended_files = in_transaction(trimming.ended_files)
    forget_deleted = in_transaction(trimming.forget_deleted)
    note_run = in_transaction(rewriting_runs.note)
    forget_run = in_transaction(rewriting_runs.forget)
    runs = in_transaction(rewriting_runs.load)

    @contextmanager
    def nothing_staged(self, topic: TopicRow, files: Mapping[str, str]) -> Iterator[known_files.Standstill]:
        """What is known of `files` (paths, with the ULIDs in their names). Inside the block nothing is staged.

        No rewrite begins either, as long as `Standstill.check` passes. Keep the block short: others wait for it, and
        give up after a minute.
        """
        with self._postgres.transaction() as connection:
            topics.lock(connection, topic)
            yield known_files.Standstill(
                self._postgres, connection, topic, known_files.file_states(connection, topic, files)
            )


class AuditChains(Part):
    """The chains of the audit trail, and entries that wait for the journal's store."""

    head = in_statements(audit_chains.head)
    begin = in_transaction(audit_chains.begin)
    take_up = in_transaction(audit_chains.take_up)
    append = in_transaction(audit_chains.append)
    unrecorded = in_statements(audit_chains.unrecorded)
    waiting = in_statements(audit_chains.waiting)
    note_written = in_statements(audit_chains.note_written)
    forget_old = in_statements(audit_chains.forget_old)
    note_checkpoint = in_statements(audit_chains.note_checkpoint)
    intend = in_statements(audit_chains.intend)
    intents = in_statements(audit_chains.intents)
    forget_intent = in_statements(audit_chains.forget_intent)
    holdings = in_transaction(audit_chains.holdings)
    old_digest = in_statements(audit_chains.old_digest)


class Chores(Part):
    """Background work: the cursor and the failures of each chore of a topic, and the commits after a cursor."""

    state = in_statements(chores.state)
    of_topics = in_statements(chores.of_topics)
    keep_cursor = in_statements(chores.keep_cursor)
    note_ended = in_statements(chores.note_ended)
    note_failed = in_statements(chores.note_failed)
    commits_since = in_transaction(chores.commits_since)


class GroupOffsets(Part):
    """Offsets that consumer groups committed."""

    commit = in_transaction(group_offsets.commit)
    load = in_transaction(group_offsets.load)
    delete = in_transaction(group_offsets.delete)
    groups = in_transaction(group_offsets.groups)
    other_clusters = in_transaction(group_offsets.other_clusters)
    expired = in_transaction(group_offsets.expired)
    expire = in_transaction(group_offsets.expire)
    claim = in_statements(group_coordinators.claim)
    release = in_statements(group_coordinators.release)
    forget_left = in_statements(group_coordinators.forget_left)
    use = in_statements(group_coordinators.use)


class ServeNodes(Part):
    """The nodes of `archiver serve kafka`."""

    propose = in_statements(serve_nodes.propose)
    join = in_statements(serve_nodes.join)
    beat = in_statements(serve_nodes.beat)
    view = in_statements(serve_nodes.view)
    give_up_lost = in_statements(serve_nodes.give_up_lost)
    leave = in_statements(serve_nodes.leave)
    others = in_statements(serve_nodes.others)


class ServedUsers(Part):
    """Users of `archiver serve kafka`."""

    every = in_transaction(served_users.every)
    keep = in_transaction(served_users.keep)
    remove = in_transaction(served_users.remove)


class LastKnown(Part):
    """The last answers of the catalog and of the schema registry, for when they can't be reached."""

    remember_table = in_statements(last_known.remember_table)
    recall_table = in_statements(last_known.recall_table)
    remember_schemas = in_transaction(last_known.remember_schemas)
    recall_schemas = in_transaction(last_known.recall_schemas)


class _Opened:
    """An open registry. Safe to share between threads, not across a fork."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._postgres.close()


class RegistryReader(_Opened):
    """The registry for programs that only read archives. It changes nothing and needs only the right to SELECT.

    It also works with a replica of the database. Opening it raises RegistryNotMigrated or RegistryOutdated where the
    database is older or newer than this program.
    """

    def __init__(self, dsn: str, *, connections: int = 4) -> None:
        super().__init__(Postgres.read_only(dsn, connections=connections))
        self.topics = TopicReader(self._postgres)
        self.ledger = LedgerReader(self._postgres)
        self.starts = PartitionStartsReader(self._postgres)
        self.ranges = RangeReader(self._postgres)


class Registry(_Opened):
    """The registry. Opening it applies missing migrations to its database.

    With `answers_within`, a call fails after so many seconds without an answer, also if the network says nothing.
    """

    def __init__(self, dsn: str, *, connections: int = 4, answers_within: float | None = None) -> None:
        super().__init__(Postgres.migrated(dsn, connections=connections, answers_within=answers_within))
        self.topics = Topics(self._postgres)
        self.ledger = Ledger(self._postgres)
        self.starts = PartitionStarts(self._postgres)
        self.files = Files(self._postgres)
        self.missing = MissingObjects(self._postgres)
        self.rows = ExpectedRows(self._postgres)
        self.rewrites = PendingRewrites(self._postgres)
        self.claims = KnownFiles(self._postgres)
        self.retention = Retention(self._postgres)
        self.holds = Holds(self._postgres)
        self.consents = RetentionConsents(self._postgres)
        self.schema_changes = SchemaChanges(self._postgres)
        self.erasures = Erasures(self._postgres)
        self.last_known = LastKnown(self._postgres)
        self.group_offsets = GroupOffsets(self._postgres)
        self.users = ServedUsers(self._postgres)
        self.serve_nodes = ServeNodes(self._postgres)
        self.audit = AuditChains(self._postgres)
        self.chores = Chores(self._postgres)

    @contextmanager
    def leases(self) -> Iterator[Leases]:
        """The leases that a run takes on its topics. They are held until the block ends, all on one connection.

        Leases save double work; correctness never depends on them. The server releases them when the process dies.
        """
        with self._postgres.session() as connection:
            yield Leases(self._postgres, connection)

    @contextmanager
    def lease(self, topic: TopicRow) -> Iterator[bool]:
        """Take the lease of one topic until the block ends. False where another process holds it."""
        with self.leases() as leases:
            yield not leases.take((topic,))

    def restore(
        self,
        topic: TopicRow,
        *,
        table_uuid: UUID,
        state: LedgerState,
        records: Sequence[VersionRecord],
        ranges: Sequence[StoredRange],
        account: Sequence[Interval] = (),
        retained: Retained | None = None,
    ) -> Restored:
        """Add what the registry lacks of a topic. `retained` is what retention, holds and erasures had done.

        `account` is what the journal says of the rows that the table must have.

        RegistryBehind where the registry knows a table with another UUID.
        """
        with self._postgres.transaction() as connection:
            topics.check_table(connection, topic, table_uuid)
            restored = restoring.restore(
                connection, topic, state=state, records=records, ranges=ranges, account=account
            )
            restoring.restore_retained(connection, topic, retained or Retained())
            if restored.ranges:
                expected_rows.forget_checked(connection, topic)
            return restored
