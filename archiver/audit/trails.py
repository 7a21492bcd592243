"""Finds and checks the trails in a journal's store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from ulid import ULID

from archiver.audit.check import ProblemKind, TrailCheck, TrailReport
from archiver.audit.folder import TrailFolder
from archiver.audit.signing import PublicKey
from archiver.config import Config
from archiver.errors import ConfigError, NotArchived
from archiver.storage.journal import AUDIT, Journal, TableJournal
from archiver.storage.objects import ObjectStore
from catalog.registry.audit_chains import ChainHead

YOUNG: Final = timedelta(minutes=10)
"""A younger commit in the journal may be about to get its entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTrail:
    """An exported trail has no journal."""

    folder: TrailFolder
    journal: TableJournal | None = None

    def entries(self) -> Iterator[Mapping[str, Any]]:
        return TrailCheck(self.folder.path).entries(self.folder.lines())

    def check(
        self,
        keys: Sequence[PublicKey] = (),
        *,
        kept: Mapping[str, bytes] | None = None,
        max_age: float | None = None,
        head: ChainHead | None = None,
    ) -> TrailReport:
        """`kept` checkpoints were stored elsewhere. `head` is the registry's. `max_age` is in seconds."""
        check = TrailCheck(self.folder.path, keys)
        for _ in check.entries(self.folder.lines()):
            pass
        check.checkpoints(self.folder.checkpoints(), trusted=(kept or {}).items())
        report = check.report
        if self.journal is not None and check.first_time is not None:
            _against_journal(check, self.journal, since=datetime.fromisoformat(check.first_time))
        if max_age is not None:
            _check_age(report, max_age)
        if head is not None and (head.entries, head.last_hash) != (report.entries, report.last_hash):
            waiting = "; some wait for the store" if head.has_waiting else ""
            text = f"the registry knows {head.entries} entries{waiting}, the store has {report.entries}, or others"
            report.add(ProblemKind.REGISTRY, text, entry=report.entries)
        return report


def find_trails(config: Config, topics: Collection[str] = ()) -> tuple[FoundTrail, ...]:
    """Raises NotArchived for a topic without a trail, and ConfigError without a journal."""
    journal = Journal.of(config)
    if journal.root is None:
        raise ConfigError("Audit trails lie in the journal: set `journal` in [archive]", key="archive.journal")
    root = f"{journal.root}/{AUDIT}"
    tables = {config.topic(topic).table: topic for topic in topics}
    trails: list[FoundTrail] = []
    for table in [f"{root}/{name}" for name in tables] or journal.objects.folders(root):
        folders = journal.objects.folders(table)
        name = table.rpartition("/")[2]
        if not folders and name in tables:
            raise NotArchived(
                "The topic has no audit trail in the journal's store", topic=tables[name], table=name, journal=root
            )
        for path in folders:
            kept = journal.named(name, UUID(path.rpartition("/")[2]))
            trails.append(FoundTrail(folder=TrailFolder(path=path, objects=journal.objects), journal=kept))
    return tuple(trails)


def exported_trail(folder: Path) -> FoundTrail:
    """Raises ConfigError if the folder is missing."""
    if not folder.is_dir():
        raise ConfigError("There is no such folder", folder=str(folder))
    return FoundTrail(folder=TrailFolder(path=folder.resolve().as_uri(), objects=ObjectStore()))


def _against_journal(check: TrailCheck, journal: TableJournal, *, since: datetime) -> None:
    until = datetime.now(UTC) - YOUNG
    lacking = dict(check.journaled)
    for commit_id in journal.commit_ids():
        lacking.pop(commit_id, None)
        made = datetime.fromtimestamp(ULID.from_str(commit_id).milliseconds / 1_000, UTC)
        if since < made < until and commit_id not in check.commits:
            text = f"the journal has the commit {commit_id} of {made:%Y-%m-%dT%H:%M:%SZ}, and no entry is about it"
            check.report.add(ProblemKind.UNRECORDED, text)
    if lacking and len(lacking) == len(check.journaled):
        text = f"the journal has none of the {len(lacking)} commits that entries are about: it was removed"
        check.report.add(ProblemKind.UNJOURNALED, text, path=journal.folder)
        return
    for commit_id, number in lacking.items():
        text = f"entry {number} is about the commit {commit_id}, and the journal lacks it: an object was removed"
        check.report.add(ProblemKind.UNJOURNALED, text, entry=number)


def _check_age(report: TrailReport, max_age: float) -> None:
    if report.signed_time is None:
        report.add(ProblemKind.CHECKPOINT, "no checkpoint was signed by a key that was given")
        return
    age = (datetime.now(UTC) - datetime.fromisoformat(report.signed_time)).total_seconds()
    if age > max_age:
        text = f"the last checkpoint is of {report.signed_time}: later ones are missing, or nobody signs any more"
        report.add(ProblemKind.CHECKPOINT, text, entry=report.signed)
