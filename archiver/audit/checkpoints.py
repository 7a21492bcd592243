"""Signed numbers of entries and last hashes (docs/audit.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

from archiver.audit.entry import FIRST_PREV, FORMAT, Author, Subject, hash_of, timestamp
from archiver.audit.folder import TrailFolder, checkpoint_name
from archiver.audit.signing import Signature, SigningKey, canonical
from archiver.errors import BadSegment, SignatureInvalid
from catalog.registry.audit_chains import ChainHead

_NAMES: Final = ("cluster_id", "topic", "table", "table_uuid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    document: Mapping[str, Any]
    signature: Signature
    hash: str

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Raises SignatureInvalid."""
        try:
            value = json.loads(data)
            document, signature = value["checkpoint"], Signature.from_json(value["signature"])
            checkpoint = cls(document=document, signature=signature, hash=hash_of(data))
            if not (
                isinstance(checkpoint.entries, int)
                and isinstance(checkpoint.root, str)
                and isinstance(checkpoint.time, str)
            ):
                raise SignatureInvalid("the checkpoint is damaged")
            if canonical({"checkpoint": document, "signature": signature.to_json()}) != data:
                raise SignatureInvalid("the checkpoint's text isn't the one that was written")
        except (ValueError, KeyError, TypeError) as error:
            raise SignatureInvalid("the checkpoint is damaged", cause=repr(error)) from error
        return checkpoint

    @property
    def entries(self) -> int:
        number: int = self.document["entries"]
        return number

    @property
    def root(self) -> str:
        text: str = self.document["root"]
        return text

    @property
    def time(self) -> str:
        text: str = self.document["time"]
        return text

    @property
    def subject(self) -> dict[str, Any]:
        return {name: self.document.get(name) for name in _NAMES}


@cache
def load_key(path: Path) -> SigningKey:
    """Raises ConfigError."""
    return SigningKey.load(path)


def is_due(head: ChainHead, every: float) -> bool:
    return head.checkpoint_at is None or (datetime.now(UTC) - head.checkpoint_at).total_seconds() >= every


def sign(folder: TrailFolder, subject: Subject, author: Author, head: ChainHead, key: SigningKey) -> Checkpoint:
    """Sign the stored trail, after reading its entries. Raises BadSegment."""
    last = _last(folder)
    entries, root = (0, FIRST_PREV) if last is None else (last.entries, last.root)
    if entries > head.entries:
        entries, root = 0, FIRST_PREV
    seen = entries
    for line in folder.lines(first=entries + 1):
        if line.place <= seen or line.place > head.entries:
            continue
        if line.place != seen + 1 or _prev(line.data) != root:
            raise _broken(folder, line.place)
        seen, root = line.place, hash_of(line.data)
    if (seen, root) != (head.entries, head.last_hash):
        raise _broken(folder, seen + 1)
    time = timestamp(datetime.now(UTC))
    document = {
        "format": FORMAT,
        **subject.to_json(),
        "entries": head.entries,
        "root": root,
        "digest": head.digest,
        "time": time,
        "by": author.to_json(),
        "prev": None if last is None else last.hash,
    }
    signature = key.sign(document)
    data = canonical({"checkpoint": document, "signature": signature.to_json()})
    folder.write_checkpoint(checkpoint_name(head.entries, time), data)
    return Checkpoint(document=document, signature=signature, hash=hashlib.sha256(data).hexdigest())


def _last(folder: TrailFolder) -> Checkpoint | None:
    paths = folder.listed().checkpoints
    return Checkpoint.from_bytes(folder.objects.read(paths[-1])) if paths else None


def _prev(line: bytes) -> object:
    try:
        return json.loads(line).get("prev")
    except (ValueError, AttributeError):
        return None


def _broken(folder: TrailFolder, place: int) -> BadSegment:
    return BadSegment(
        "the audit trail in the store isn't what was written: an entry was changed or is gone. No checkpoint is signed"
        " until it is restored; `archiver audit check` tells more",
        folder=folder.path,
        entry=place,
    )
