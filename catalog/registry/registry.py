"""The registry in Postgres (docs/stored-files.md): an index of tables and journal, which hold the truth.

Each call is a transaction or a single statement. Any may raise `RegistryUnreachable`, and is then safe to repeat.
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
    accepted_rows,
    account_rows,
    audit_chains,
    chores,
    erased_offsets,
    expected_rows,
    file_values,
    files,
    first_offsets,
    group_coordinators,
    group_offsets,
    held_ranges,
    history,
    holds,
    intake_logs,
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
    run_clock,
    schema_changes,
    serve_nodes,
    served_users,
    term_runs,
    topics,
    trimming,
)
from catalog.registry.leases import Leases
from catalog.registry.metadata_entries import RecordMetadata, RecordMetadataReader
from catalog.registry.parts import Part, in_statements, in_transaction
from catalog.registry.postgres import Postgres
from catalog.registry.restoring import Restored, Retained
from schema_mapping.columns.ledger import LedgerState


class TopicReader(Part):
    find = in_statements(topics.find)
    every = in_statements(topics.every)
    owners = in_statements(topics.owners)
    check_identity = in_statements(topics.check_identity)
    overview = in_transaction(overview.of_topics)


class Topics(TopicReader):
    register = in_transaction(topics.register)


class SchemaChanges(Part):
    of_topics = in_statements(schema_changes.of_topics)
    note_waiting = in_transaction(schema_changes.note_waiting)
    forget_waiting = in_statements(schema_changes.forget_waiting)
    approve = in_statements(schema_changes.approve)


class LedgerReader(Part):
    load = in_transaction(ledger_rows.load)
    row_mapping = in_statements(ledger_rows.row_mapping)
    journaled = in_statements(history.journaled)
    history = in_statements(history.load)


class Ledger(LedgerReader):
    assign = in_transaction(ledger.assign_columns)
    read_together = in_transaction(ledger_rows.read_together)
    check_table = in_transaction(ledger.check_loaded_table)
    note_journaled = in_statements(history.note_journaled)


class PartitionStartsReader(Part):
    known = in_transaction(partition_starts.known)


class PartitionStarts(PartitionStartsReader):
    decide = in_transaction(partition_starts.decide)
    pending = in_transaction(partition_starts.pending)
    first_log_starts = in_transaction(partition_starts.first_log_starts)


class RangeReader(Part):
    committed = in_statements(files.committed)
    pending = in_statements(files.pending)
    unfinished = in_transaction(pending_rewrites.unfinished)
    both_books = in_transaction(account_rows.both_books)
    accepted_offsets = in_statements(accepted_rows.load)
    proven_first_offsets = in_statements(first_offsets.proven)
    first_offsets = in_statements(first_offsets.load)


class Files(Part):
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
        if not (settled.landed or settled.refused):
            return
        with self._postgres.transaction() as connection:
            files.record(connection, topic, settled)
            if settled.landed:
                expected_rows.forget_checked(connection, topic)


class FileValuesReader(Part):
    absent = in_statements(file_values.absent)


class FileValues(FileValuesReader):
    note = in_transaction(file_values.note)
    missing = in_statements(file_values.missing)


class TermRunsReader(Part):
    state = in_statements(term_runs.state)


class TermRuns(TermRunsReader):
    now_ms = in_statements(run_clock.now_ms)
    load = in_statements(term_runs.load)
    add = in_transaction(term_runs.add)
    begin_merge = in_transaction(term_runs.begin_merge)
    replace = in_transaction(term_runs.replace)
    drop = in_transaction(term_runs.drop)
    gone = in_transaction(term_runs.gone_offsets)
    erase = in_transaction(term_runs.erase)
    cut = in_statements(term_runs.cut)
    note_cut = in_statements(term_runs.note_cut)
    dropped = in_statements(term_runs.dropped)
    forget = in_statements(term_runs.forget)
    forget_files = in_transaction(term_runs.forget_files)
    note_folder = in_statements(term_runs.note_folder)
    folders = in_statements(term_runs.folders)
    forget_folder = in_statements(term_runs.forget_folder)


class MissingObjects(Part):
    """Staged ranges whose objects were missing at their commit."""

    reject = in_transaction(missing_objects.reject)
    load = in_statements(missing_objects.load)
    take_up = in_transaction(missing_objects.take_up)


class ExpectedRows(Part):
    expected_ranges = in_statements(expected_rows.expected_ranges)
    kept_files = in_statements(expected_rows.kept_files)
    account = in_statements(account_rows.touched)
    committed_spans = in_transaction(expected_rows.all_committed_spans)
    checked = in_statements(expected_rows.checked)
    last_checked = in_statements(expected_rows.last_checked)
    note_checked = in_statements(expected_rows.note_checked)
    replace_checked = in_statements(expected_rows.replace_checked)
    gone = in_statements(expected_rows.gone)
    accepted_offsets = in_statements(accepted_rows.load)
    record_refill = in_transaction(expected_rows.record_refill)


class PendingRewrites(Part):
    begin = in_transaction(pending_rewrites.begin)
    finish = in_transaction(pending_rewrites.finish)
    abandon = in_transaction(pending_rewrites.forget)
    unfinished = in_transaction(pending_rewrites.unfinished)
    may_go_on = in_transaction(pending_rewrites.may_go_on)
    begin_to_end = in_transaction(pending_rewrites.begin_to_end)
    note_last_attempt = in_transaction(pending_rewrites.note_last_attempt)
    ending = in_transaction(pending_rewrites.ending)


class Retention(Part):
    proven_first_offsets = in_statements(first_offsets.proven)
    first_offsets = in_transaction(first_offsets.load)
    ranges = in_transaction(removable.ranges)
    removed_files = in_transaction(removable.removed_files)
    retired_files = in_transaction(removable.retired_files)
    now = in_transaction(removable.now)


class Holds(Part):
    load = in_transaction(holds.load)
    active = in_transaction(holds.active)
    keep = in_transaction(holds.keep)
    named = in_transaction(holds.named)


class RetentionConsents(Part):
    of_topics = in_transaction(retention_consents.of_topics)
    request = in_transaction(retention_consents.request)
    give = in_transaction(retention_consents.give)
    withdraw_requests = in_transaction(retention_consents.withdraw_requests)


class Erasures(Part):
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
    """Needed files, and claims of runs on uploads."""

    file_states = in_transaction(known_files.file_states)
    renew = in_transaction(known_files.renew)
    forget = in_transaction(known_files.forget)
    ended_files = in_transaction(trimming.ended_files)
    forget_deleted = in_transaction(trimming.forget_deleted)
    note_run = in_transaction(rewriting_runs.note)
    renew_run = in_statements(rewriting_runs.renew)
    forget_run = in_transaction(rewriting_runs.forget)
    runs = in_transaction(rewriting_runs.load)

    @contextmanager
    def nothing_staged(self, topic: TopicRow, files: Mapping[str, str]) -> Iterator[known_files.Standstill]:
        """In the block nothing of the topic is staged and no rewrite begins, as long as `Standstill.check` passes.

        `files` are paths with ULIDs. Keep it short: other processes give up after a minute.
        """
        with self._postgres.transaction() as connection:
            topics.lock(connection, topic)
            yield known_files.Standstill(
                self._postgres, connection, topic, known_files.file_states(connection, topic, files)
            )


class AuditChains(Part):
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
    state = in_statements(chores.state)
    of_topics = in_statements(chores.of_topics)
    keep_cursor = in_statements(chores.keep_cursor)
    note_ended = in_statements(chores.note_ended)
    note_failed = in_statements(chores.note_failed)
    commits_since = in_transaction(chores.commits_since)


class GroupOffsets(Part):
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
    propose = in_statements(serve_nodes.propose)
    join = in_statements(serve_nodes.join)
    beat = in_statements(serve_nodes.beat)
    view = in_statements(serve_nodes.view)
    give_up_lost = in_statements(serve_nodes.give_up_lost)
    leave = in_statements(serve_nodes.leave)
    others = in_statements(serve_nodes.others)


class ServedUsers(Part):
    every = in_transaction(served_users.every)
    keep = in_transaction(served_users.keep)
    remove = in_transaction(served_users.remove)


class IntakeLogs(Part):
    take = in_transaction(intake_logs.take)
    drain = in_transaction(intake_logs.drain)
    report = in_transaction(intake_logs.report)
    request = in_transaction(intake_logs.request)
    wrote = in_transaction(intake_logs.wrote)
    keep_states = in_transaction(intake_logs.keep_states)
    last_state = in_statements(intake_logs.last_state)
    begin_abandon = in_transaction(intake_logs.begin_abandon)
    of_topics = in_statements(intake_logs.of_topics)


class LastKnown(Part):
    remember_table = in_statements(last_known.remember_table)
    recall_table = in_statements(last_known.recall_table)
    remember_schemas = in_transaction(last_known.remember_schemas)
    recall_schemas = in_transaction(last_known.recall_schemas)


class _Opened:
    """Thread-safe, not fork-safe."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._postgres.close()


class RegistryReader(_Opened):
    """The registry with SELECT only, also on a replica.

    Opening raises RegistryNotMigrated or RegistryOutdated for other versions. `answers_within` is as in Registry.
    """

    def __init__(self, dsn: str, *, connections: int = 4, answers_within: float | None = None) -> None:
        super().__init__(Postgres.read_only(dsn, connections=connections, answers_within=answers_within))
        self.topics = TopicReader(self._postgres)
        self.ledger = LedgerReader(self._postgres)
        self.starts = PartitionStartsReader(self._postgres)
        self.ranges = RangeReader(self._postgres)
        self.values = FileValuesReader(self._postgres)
        self.index = TermRunsReader(self._postgres)
        self.metadata = RecordMetadataReader(self._postgres)


class Registry(_Opened):
    """The registry. Opening it applies missing migrations.

    With `answers_within` calls fail after these seconds, even on a silent network.
    """

    def __init__(self, dsn: str, *, connections: int = 4, answers_within: float | None = None) -> None:
        super().__init__(Postgres.migrated(dsn, connections=connections, answers_within=answers_within))
        self.topics = Topics(self._postgres)
        self.ledger = Ledger(self._postgres)
        self.starts = PartitionStarts(self._postgres)
        self.files = Files(self._postgres)
        self.values = FileValues(self._postgres)
        self.index = TermRuns(self._postgres)
        self.missing = MissingObjects(self._postgres)
        self.rows = ExpectedRows(self._postgres)
        self.rewrites = PendingRewrites(self._postgres)
        self.claims = KnownFiles(self._postgres)
        self.retention = Retention(self._postgres)
        self.holds = Holds(self._postgres)
        self.consents = RetentionConsents(self._postgres)
        self.schema_changes = SchemaChanges(self._postgres)
        self.erasures = Erasures(self._postgres)
        self.metadata = RecordMetadata(self._postgres)
        self.last_known = LastKnown(self._postgres)
        self.group_offsets = GroupOffsets(self._postgres)
        self.users = ServedUsers(self._postgres)
        self.serve_nodes = ServeNodes(self._postgres)
        self.audit = AuditChains(self._postgres)
        self.chores = Chores(self._postgres)
        self.intake = IntakeLogs(self._postgres)

    @contextmanager
    def leases(self) -> Iterator[Leases]:
        """On one connection until the block ends."""
        with self._postgres.session() as connection:
            yield Leases(self._postgres, connection)

    @contextmanager
    def lease(self, topic: TopicRow) -> Iterator[bool]:
        """False if another process holds the lease."""
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
        """Add rows that the registry lacks. `retained` are retention, holds and erasures.

        Raises RegistryBehind for a table with another UUID.
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
