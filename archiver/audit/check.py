"""Checks each entry against the previous one, and all against signed checkpoints.

Doesn't find lost entries after the last checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from archiver.audit.acts import RefilledAct
from archiver.audit.checkpoints import Checkpoint
from archiver.audit.entry import FIRST_PREV, FORMAT, hash_of
from archiver.audit.folder import StoredLine
from archiver.audit.signing import PublicKey, canonical
from archiver.errors import SignatureInvalid
from catalog.digests import add_digests, subtract_digest

_HASH: Final = 32
_NONE: Final = bytes(_HASH)
_NAMES: Final = ("cluster_id", "topic", "table", "table_uuid")
_MOST: Final = 1_000


class ProblemKind(StrEnum):
    DAMAGED = "damaged"
    """An object's bytes are no entry."""
    MISSING = "missing"
    """There is no entry with this number."""
    CONFLICT = "conflict"
    """Two different entries have this number."""
    MISPLACED = "misplaced"
    """An entry has another entry's number, or is about another table."""
    BROKEN = "broken"
    """An entry doesn't name the hash of the previous one: one of the two was changed."""
    DIGEST = "digest"
    """An entry's digest of the table doesn't follow from the previous one."""
    SIGNATURE = "signature"
    """A checkpoint isn't signed by the key, or was changed."""
    ROOT = "root"
    """Entries up to a checkpoint differ from what it signed."""
    TRUNCATED = "truncated"
    """A checkpoint signed more entries than there are."""
    CHECKPOINT = "checkpoint"
    """A checkpoint is missing that a later one names."""
    UNJOURNALED = "unjournaled"
    """An entry is about a commit that the journal lacks."""
    UNRECORDED = "unrecorded"
    """The journal has a commit that no entry is about."""
    REGISTRY = "registry"
    """The registry has other entries than the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    kind: ProblemKind
    text: str
    entry: int | None = None
    path: str | None = None


@dataclass(slots=True, kw_only=True)
class TrailReport:
    """`signed` entries are before a checkpoint of a given key."""

    topic: str = ""
    table: str = ""
    folder: str = ""
    entries: int = 0
    last_hash: str = FIRST_PREV
    last_time: str | None = None
    digest: str | None = None
    checkpoints: int = 0
    signed: int = 0
    signed_time: str | None = None
    keys: tuple[str, ...] = ()
    problems: list[Problem] = field(default_factory=list)
    more_problems: int = 0

    @property
    def is_whole(self) -> bool:
        return not self.problems

    @property
    def unsigned(self) -> int:
        """Their loss would go unnoticed."""
        return self.entries - self.signed

    def add(self, kind: ProblemKind, text: str, *, entry: int | None = None, path: str | None = None) -> None:
        if len(self.problems) < _MOST:
            self.problems.append(Problem(kind=kind, text=text, entry=entry, path=path))
        else:
            self.more_problems += 1


class TrailCheck:
    """Takes 32 bytes per entry. `journaled` are the journal's commits, by entry number."""

    def __init__(self, folder: str, keys: Sequence[PublicKey] = ()) -> None:
        self.report = TrailReport(folder=folder, keys=tuple(key.id for key in keys))
        self.commits: set[str] = set()
        self.journaled: dict[str, int] = {}
        self.first_time: str | None = None
        self._keys = {key.id: key for key in keys}
        self._hashes = bytearray()
        self._subject: dict[str, Any] | None = None
        self._digest: str | None = None
        self._has_digest = False

    def entries(self, lines: Iterable[StoredLine]) -> Iterator[Mapping[str, Any]]:
        for line in lines:
            hash_ = bytes.fromhex(hash_of(line.data))
            earlier_hash = self._hash(line.place)
            if earlier_hash is not None:
                if earlier_hash != hash_:
                    text = f"two different entries have the number {line.place}"
                    self.report.add(ProblemKind.CONFLICT, text, entry=line.place, path=line.path)
                continue
            value = self._parsed(line)
            self._gap(line.place)
            self._put(line.place, hash_)
            if value is not None and self._follows(line, value):
                yield value
        self.report.entries = len(self._hashes) // _HASH
        if self.report.entries:
            self.report.last_hash = self._hashes[-_HASH:].hex()

    def checkpoints(self, found: Iterable[tuple[str, bytes]], *, trusted: Iterable[tuple[str, bytes]] = ()) -> None:
        """Call it after `entries`. `trusted` checkpoints were stored elsewhere."""
        hashes: set[str] = set()
        named: list[tuple[str, Checkpoint]] = []
        for path, data in (*found, *trusted):
            try:
                checkpoint = Checkpoint.from_bytes(data)
                if self._keys:
                    self._verify(checkpoint)
            except SignatureInvalid as error:
                self.report.add(ProblemKind.SIGNATURE, f"{error}", path=path)
                continue
            hashes.add(checkpoint.hash)
            named.append((path, checkpoint))
            self._against_entries(path, checkpoint)
        self.report.checkpoints = len(hashes)
        for path, checkpoint in named:
            prev = checkpoint.document.get("prev")
            if prev is not None and prev not in hashes:
                text = "the checkpoint before this one is missing or was changed"
                self.report.add(ProblemKind.CHECKPOINT, text, entry=checkpoint.entries, path=path)

    def _parsed(self, one: StoredLine) -> Mapping[str, Any] | None:
        try:
            value = json.loads(one.data)
            if value["format"] == FORMAT and canonical(value) == one.data and isinstance(value["digest"], dict):
                document: Mapping[str, Any] = value
                return document
        except (ValueError, KeyError, TypeError):
            pass
        self._has_digest = False
        self.report.add(ProblemKind.DAMAGED, f"entry {one.place} can't be read", entry=one.place, path=one.path)
        return None

    def _gap(self, place: int) -> None:
        expected = len(self._hashes) // _HASH + 1
        if place > expected:
            is_one = place == expected + 1
            text = f"entry {expected} is missing" if is_one else f"entries {expected} to {place - 1} are missing"
            self.report.add(ProblemKind.MISSING, text, entry=expected)

    def _follows(self, one: StoredLine, value: Mapping[str, Any]) -> bool:
        subject = {name: value.get(name) for name in _NAMES}
        if self._subject is None:
            self._subject, self.first_time = subject, value.get("time")
            self.report.topic, self.report.table = str(subject["topic"]), str(subject["table"])
        if value.get("seq") != one.place or subject != self._subject:
            text = f"in the place of entry {one.place} lies entry {value.get('seq')} of {subject['table']}"
            self.report.add(ProblemKind.MISPLACED, text, entry=one.place, path=one.path)
            self._has_digest = False
            return False
        before = FIRST_PREV if one.place == 1 else (self._hash(one.place - 1) or b"").hex()
        if before and value.get("prev") != before:
            text = f"entry {one.place} doesn't follow entry {one.place - 1}: one of them was changed"
            self.report.add(ProblemKind.BROKEN, text, entry=one.place, path=one.path)
        self._check_digest(one, value)
        self.report.last_time = str(value.get("time"))
        details = value.get("details")
        if isinstance(details, dict) and isinstance(details.get("commit_id"), str):
            self.commits.add(details["commit_id"])
            if "files" in details and value.get("act") != RefilledAct.kind:
                self.journaled[details["commit_id"]] = one.place
        return True

    def _check_digest(self, one: StoredLine, value: Mapping[str, Any]) -> None:
        digest = value["digest"]
        before, after = digest.get("before"), digest.get("after")
        right = (self._digest == before if self._has_digest else True) and _adds_up(value)
        if not right:
            text = f"the digests of entry {one.place} don't follow from the entry before"
            self.report.add(ProblemKind.DIGEST, text, entry=one.place, path=one.path)
        self._digest, self._has_digest = after, True
        self.report.digest = after

    def _verify(self, checkpoint: Checkpoint) -> None:
        key = self._keys.get(checkpoint.signature.key_id)
        if key is None:
            raise SignatureInvalid(
                "the checkpoint is signed by another key: give the public key that belongs to it",
                signed_by=checkpoint.signature.key_id,
            )
        key.check(checkpoint.document, checkpoint.signature)

    def _against_entries(self, path: str, checkpoint: Checkpoint) -> None:
        if self._subject is not None and checkpoint.subject != self._subject:
            text = f"the checkpoint is about {checkpoint.subject['table']}, not about this trail"
            self.report.add(ProblemKind.MISPLACED, text, path=path)
            return
        if checkpoint.entries > self.report.entries:
            text = (
                f"{checkpoint.entries} entries were signed at {checkpoint.time}, and there are"
                f" {self.report.entries}: the rest was cut off"
            )
            self.report.add(ProblemKind.TRUNCATED, text, entry=self.report.entries + 1, path=path)
            return
        if (self._hash(checkpoint.entries) or b"").hex() != checkpoint.root:
            text = f"the first {checkpoint.entries} entries aren't those that were signed at {checkpoint.time}"
            self.report.add(ProblemKind.ROOT, text, entry=checkpoint.entries, path=path)
            return
        if self._keys and checkpoint.entries >= self.report.signed:
            self.report.signed, self.report.signed_time = checkpoint.entries, checkpoint.time

    def _hash(self, place: int) -> bytes | None:
        prior_hash = bytes(self._hashes[(place - 1) * _HASH : place * _HASH])
        return prior_hash if len(prior_hash) == _HASH and prior_hash != _NONE else None

    def _put(self, place: int, hash_: bytes) -> None:
        missing = (place - 1) * _HASH - len(self._hashes)
        if missing > 0:
            self._hashes += bytes(missing)
        self._hashes[(place - 1) * _HASH : place * _HASH] = hash_


def _adds_up(value: Mapping[str, Any]) -> bool:
    digest = value["digest"]
    before, added, removed, after = (digest.get(name) for name in ("before", "added", "removed", "after"))
    details = value.get("details")
    if isinstance(details, dict) and details.get("keeps_all_records"):
        return bool(after == before)
    if before is None or added is None or removed is None:
        return after is None
    try:
        return bool(after == subtract_digest(add_digests((before, added)) or "0", removed))
    except (ValueError, TypeError):
        return False
