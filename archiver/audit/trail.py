"""Records each act once, in one chain (docs/adr/0044). Entries wait in the registry for the store."""

from __future__ import annotations

import getpass
import json
import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from archiver.audit.acts import Act, Appended, Began, ConfiguredHold, Evolved, RefilledAct, RepartitionedAct, Rewrote
from archiver.audit.checkpoints import Checkpoint, is_due, load_key, sign
from archiver.audit.entry import Author, Draft, Subject
from archiver.audit.folder import TrailFolder
from archiver.audit.stored_chain import StoredChain
from archiver.config import AuditSection
from archiver.errors import SignatureInvalid, StorageError, StorageUnavailable
from archiver.fault_points import AuditPoint, pass_point
from archiver.storage.journal import TableJournal
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import find_commit
from catalog.iceberg.repartition import KEPT_CHANGES, changes_of
from catalog.iceberg.settle import Settled
from catalog.model import TopicRow, TranslatedRange
from catalog.ranges.rewrite import Rewrite
from catalog.registry import Registry
from catalog.registry.audit_chains import ChainHead, Intent, NewEntry, WaitingEntry

_LOG = logging.getLogger(__name__)

_TRIES: Final = 5

SETTLED_ENTRIES: Final = 16
"""The last entries stay alone: their writer may be about to write them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTrail:
    """Without a journal it records nothing. Methods raise subclasses of RegistryError."""

    topic: TopicRow
    journal: TableJournal
    registry: Registry

    @property
    def folder(self) -> TrailFolder | None:
        path = self.journal.trail
        return (
            None
            if path is None
            else TrailFolder(path=path, objects=self.journal.objects, logged=self.journal.memory.logged)
        )

    def begin(
        self,
        *,
        version: int = 0,
        fingerprint: str = "",
        table: ArchiveTable | None = None,
        has_lease: bool = True,
        is_held: bool | None = None,
    ) -> None:
        """Begin the trail if necessary; record a new schema version; write waiting entries; sign if due.

        With `table`, settle commits of killed runs: refills only with the lease. Raises ConfigError if the key can't
        sign.
        """
        if self.journal.trail is None:
            return
        if self.journal.audit.signing_key is not None:
            load_key(self.journal.audit.signing_key)
        head = self.registry.audit.head(self.topic) or self._begun()
        if head.schema_version < version:
            self.record(Evolved(version=version, fingerprint=fingerprint))
        if is_held is not None:
            self._note_hold(head, is_held=is_held)
        if head.has_intents and table is not None:
            self._settle_intents(table, has_lease=has_lease)
        if head.has_waiting:
            self.write_waiting()
        if is_due(head, self.journal.audit.checkpoint_every):
            self.checkpoint()

    def note_hold(self, *, is_held: bool) -> None:
        if self.journal.trail is not None:
            self._note_hold(self.registry.audit.head(self.topic) or self._begun(), is_held=is_held)

    def _note_hold(self, head: ChainHead, *, is_held: bool) -> None:
        for _ in range(_TRIES):  # the store may have changes that a database which was set back learns of only then
            if head.is_held_by_config == is_held:
                return
            self.record(ConfiguredHold(change=head.config_holds + 1))
            head = self.registry.audit.head(self.topic) or self._begun()

    def record(self, act: Act, *, is_late: bool = False) -> None:
        """Idempotent. `is_late`: an earlier run did it.

        An entry that the store refuses waits for the next act or run.
        """
        if self.journal.trail is None:
            return
        draft = Draft.of_act(act, self._subject, author(self.journal.audit), is_late=is_late)
        self._add(draft, act.range_ids if isinstance(act, Appended) else ())

    def intend(self, act: RefilledAct | RepartitionedAct, *, parent: int | None) -> None:
        """An intended commit gets its entry in any case. `parent` is its base snapshot or spec."""
        if self.journal.trail is not None:
            draft = Draft.of_act(act, self._subject, author(self.journal.audit), is_late=False)
            self.registry.audit.intend(
                self.topic,
                Intent(
                    act_id=act.id,
                    commit_id=act.commit_id,
                    parent=parent,
                    begun=datetime.now(UTC),
                    entry=draft.to_json(),
                ),
            )

    def withdraw(self, act: RefilledAct | RepartitionedAct) -> None:
        if self.journal.trail is not None:
            self.registry.audit.forget_intent(self.topic, act.id)

    def appended(self, commit_id: str, snapshot_id: int, ranges: Sequence[TranslatedRange]) -> None:
        """Call it before the registry confirms."""
        self.record(Appended(ranges=tuple(ranges), commit_id=commit_id, snapshot_id=snapshot_id))

    def settled(self, settled: Settled) -> None:
        """Call it before the registry records."""
        if self.journal.trail is None or not settled.landed:
            return
        commits: dict[tuple[str | None, int | None], list[TranslatedRange]] = {}
        for item in settled.landed:
            commits.setdefault((item.commit_id, item.snapshot_id), []).append(item.range)
        for (commit_id, snapshot_id), ranges in commits.items():
            unrecorded = ranges if commit_id is not None else self._unrecorded(ranges)
            if unrecorded:
                self.record(
                    Appended(ranges=tuple(unrecorded), commit_id=commit_id, snapshot_id=snapshot_id), is_late=True
                )

    def rewrote(self, rewrite: Rewrite, *, snapshot_id: int | None = None, is_late: bool = False) -> None:
        """Call it after the commit, before the registry records."""
        if self.journal.trail is None:
            return
        act = Rewrote(rewrite=rewrite, snapshot_id=snapshot_id)
        if act.leaves_out:
            old = self.registry.audit.old_digest(self.topic, rewrite.known_paths)
            act = Rewrote(rewrite=rewrite, snapshot_id=snapshot_id, old_digest=old)
        self.record(act, is_late=is_late)

    def write_waiting(self) -> int:
        """Return how many entries still wait. A failure is logged."""
        return 0 if self.folder is None else self._write(self.folder, self.registry.audit.waiting(self.topic))

    def _add(self, draft: Draft, range_ids: Sequence[str] = ()) -> None:
        waiting = self.registry.audit.append(self.topic, draft.act_id, draft.at, range_ids)
        if waiting is None:
            self._begun()
            waiting = self.registry.audit.append(self.topic, draft.act_id, draft.at, range_ids)
        pass_point(AuditPoint.AUDIT_RECORDED)
        if waiting and self.folder is not None:
            self._write(self.folder, waiting)
        pass_point(AuditPoint.AUDIT_WRITTEN)

    def _write(self, folder: TrailFolder, waiting: tuple[WaitingEntry, ...]) -> int:
        try:
            if folder.path not in self.journal.memory.agreed:
                waiting = self._agreed(folder)
            for entry in waiting:
                folder.write(entry.seq, entry.line)
        except StorageError as error:
            self.journal.memory.agreed.discard(folder.path)
            _LOG.warning(
                "%s: %d entries of the audit trail wait in the registry, since the store doesn't take them: %s",
                self.topic.topic,
                len(waiting),
                error,
            )
            return len(waiting)
        if waiting:
            self.registry.audit.note_written(self.topic, waiting[-1].seq)
        return 0

    def tidy(self) -> int:
        folder = self.folder
        head = None if folder is None else self.registry.audit.head(self.topic)
        if folder is None or head is None:
            return 0
        self.registry.audit.forget_old(self.topic)
        waiting = self.registry.audit.waiting(self.topic)
        return folder.pack(through=(waiting[0].seq if waiting else head.entries) - SETTLED_ENTRIES)

    def checkpoint(self) -> Checkpoint | None:
        """None without a key, or if signing must wait."""
        folder, path = self.folder, self.journal.audit.signing_key
        if folder is None or path is None:
            return None
        key = load_key(path)
        if self._write(folder, self.registry.audit.waiting(self.topic)):
            return None
        head = self.registry.audit.head(self.topic)
        if head is None or head.has_waiting:  # another process has just added an entry, and signs it soon
            return None
        try:
            made = sign(folder, self._subject, author(self.journal.audit), head, key)
        except (StorageError, SignatureInvalid) as error:
            _LOG.warning("%s: no checkpoint of the audit trail is signed: %s", self.topic.topic, error)
            return None
        at = datetime.fromisoformat(made.time)
        self.registry.audit.note_checkpoint(self.topic, entries=made.entries, hash_=made.hash, at=at)
        return made

    @property
    def _subject(self) -> Subject:
        return Subject(
            cluster_id=self.topic.cluster_id,
            topic=self.topic.topic,
            table=self.topic.table,
            table_uuid=str(self.journal.uuid),
        )

    def _unrecorded(self, ranges: Sequence[TranslatedRange]) -> list[TranslatedRange]:
        left = self.registry.audit.unrecorded(self.topic, [item.id for item in ranges])
        return [item for item in ranges if item.id in left]

    def _settle_intents(self, table: ArchiveTable, *, has_lease: bool) -> None:
        for intent in self.registry.audit.intents(self.topic):
            draft = Draft.from_json(intent.entry)
            if draft.kind == RepartitionedAct.kind:
                self._settle_repartition(intent, draft, table)
                continue
            if not has_lease:
                continue
            snapshot_id = find_commit(table, intent.commit_id)
            if snapshot_id is not None:
                self._add(draft.found(snapshot_id))
            elif table.snapshot_id == intent.parent:
                continue  # it may still land
            elif _reaches_back(table, intent.begun):
                self.registry.audit.forget_intent(self.topic, intent.act_id)
            else:
                self._add(draft.doubtful())

    def _settle_repartition(self, intent: Intent, draft: Draft, table: ArchiveTable) -> None:
        changes = changes_of(table)
        if intent.commit_id in changes:
            self._add(draft.found(None))
        elif table.iceberg.metadata.default_spec_id == intent.parent:
            return  # it may still land
        elif len(changes) < KEPT_CHANGES:
            self.registry.audit.forget_intent(self.topic, intent.act_id)
        else:
            self._add(draft.doubtful())

    def _begun(self) -> ChainHead:
        folder, uuid = self.folder, self.journal.uuid
        assert folder is not None
        assert uuid is not None
        stored = StoredChain.read(folder, uuid)
        if stored.broken_at is not None:
            _LOG.warning(
                "%s: the audit trail is damaged after entry %d, at %s: new entries wait in the registry until it is"
                " restored; `archiver audit check` says what is wrong",
                self.topic.topic,
                stored.head.entries,
                stored.broken_at,
            )
        self.registry.audit.begin(self.topic, stored.head, stored.acts)
        if not stored.head.entries:
            holdings = self.registry.audit.holdings(self.topic)
            act = Began(is_new=not holdings.files, rows=holdings.rows, files=holdings.files, digest=holdings.digest)
            draft = Draft.of_act(act, self._subject, author(self.journal.audit), is_late=False)
            self.registry.audit.append(self.topic, draft.act_id, draft.at)
        head = self.registry.audit.head(self.topic)
        assert head is not None
        return head

    def _agreed(self, folder: TrailFolder) -> tuple[WaitingEntry, ...]:
        """A restored database may lack some of the store's entries."""
        for _ in range(_TRIES):
            last = folder.listed().last  # before the registry, which has every entry earlier than the store
            head, waiting = self.registry.audit.head(self.topic), self.registry.audit.waiting(self.topic)
            assert head is not None
            if last <= head.entries and (not waiting or last < waiting[0].seq or _has(folder, waiting)):
                break
            stored, start = StoredChain.read(folder, head.table_uuid), _last_written(head, waiting)
            stored.check_goes_on(*start, folder)
            if self.registry.audit.take_up(self.topic, head, stored.head, known=stored.acts, again=_again):
                _LOG.warning(
                    "%s: the store has entries of the audit trail that the registry doesn't know, so its database was"
                    " set back; the trail goes on after entry %d",
                    self.topic.topic,
                    stored.head.entries,
                )
        else:
            raise StorageUnavailable(
                "the audit trail changes faster than it can be compared with the store: the next run goes on",
                folder=folder.path,
            )
        self.journal.memory.agreed.add(folder.path)
        return waiting


@cache
def author(section: AuditSection) -> Author:
    try:
        own = version("kafka-iceberg-archiver")
    except PackageNotFoundError:  # run from a checkout
        own = "unknown"
    return Author(principal=section.principal or _user(), host=socket.gethostname(), version=own)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in a container
        import os

        return f"uid {os.getuid()}"


def _last_written(head: ChainHead, waiting: Sequence[WaitingEntry]) -> tuple[int, str]:
    if not waiting:
        return head.entries, head.last_hash
    return waiting[0].seq - 1, json.loads(waiting[0].line)["prev"]


def _has(folder: TrailFolder, waiting: Sequence[WaitingEntry]) -> bool:
    """True if a killed run wrote them."""
    expected = {entry.seq: entry.line.encode() for entry in waiting}
    stored = {line.place: line.data for line in folder.lines(first=waiting[0].seq)}
    return all(expected[seq] == line for seq, line in stored.items() if seq in expected)


def _reaches_back(table: ArchiveTable, time: datetime) -> bool:
    return any(snapshot.timestamp_ms < time.timestamp() * 1_000 for snapshot in table.iceberg.metadata.snapshots)


def _again(each: WaitingEntry, head: ChainHead) -> NewEntry:
    return Draft.from_json(json.loads(each.line)).at(head)
