"""A small audit trail in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from archiver.audit.acts import NO_RECORDS, Act, Appended, Began, Evolved, Noted
from archiver.audit.check import TrailReport
from archiver.audit.checkpoints import Checkpoint, sign
from archiver.audit.entry import FIRST_PREV, Author, Draft, Subject
from archiver.audit.folder import PackLimits, TrailFolder
from archiver.audit.signing import PublicKey, SigningKey
from archiver.audit.trails import FoundTrail
from archiver.storage.objects import ObjectStore
from catalog.digests import digest_text
from catalog.model import DataFileInfo, TranslatedRange, new_id
from catalog.registry.audit_chains import ChainHead

UUID_ = UUID(int=7)
SUBJECT = Subject(cluster_id="cluster", topic="orders", table="kafka.orders", table_uuid=str(UUID_))
AUTHOR = Author(principal="ops@example.com", host="one", version="1")
EMPTY = ChainHead(table_uuid=UUID_, entries=0, last_hash=FIRST_PREV, digest=NO_RECORDS)


def appended(number: int) -> Appended:
    file = DataFileInfo(path=f"s3://lake/{number}.parquet", size_bytes=1, rows=10, digest=digest_text(number))
    ranges = TranslatedRange(
        id=new_id(),
        topic="orders",
        partition=number % 3,
        start_offset=10 * number,
        end_offset=10 * number + 10,
        schema_version=1,
        leader_epoch=0,
        files=(file,),
        created_ms=0,
    )
    return Appended(ranges=(ranges,), commit_id=new_id(), snapshot_id=1 << 62)


def acts(count: int) -> list[Act]:
    result: list[Act] = [Began(is_new=True), Evolved(version=1, fingerprint="f")]
    while len(result) < count:
        number = len(result)
        note = Noted(kind="hold", id=f"hold-{number}", details={"why": "Fall §5", "from": None})
        result.append(note if number % 7 == 0 else appended(number))
    return result


@dataclass
class Written:
    path: Path
    signing: SigningKey
    stored: TrailFolder | None = None
    limits: PackLimits = field(default_factory=PackLimits)
    head: ChainHead = EMPTY
    checkpoints: list[Checkpoint] = field(default_factory=list)

    @classmethod
    def begin(cls, folder: Path, limits: PackLimits | None = None) -> Written:
        folder.mkdir(parents=True)
        (folder / "trail").mkdir()
        signing = SigningKey.generate(folder / "key.pem", folder / "key.pem.pub")
        return cls(path=folder / "trail", signing=signing, limits=limits or PackLimits())

    @property
    def folder(self) -> TrailFolder:
        return self.stored or TrailFolder(path=self.path.as_uri(), objects=ObjectStore(), limits=self.limits)

    def add(self, *those: Act, subject: Subject = SUBJECT) -> None:
        for act in those:
            entry = Draft.of_act(act, subject, AUTHOR, is_late=False).at(self.head)
            self.folder.write(self.head.entries + 1, entry.line)
            self.head = replace(self.head, entries=self.head.entries + 1, last_hash=entry.hash, digest=entry.digest)

    def sign(self) -> Checkpoint:
        self.checkpoints.append(sign(self.folder, SUBJECT, AUTHOR, self.head, self.signing))
        return self.checkpoints[-1]

    def files(self, pattern: str) -> list[Path]:
        return sorted(self.path.glob(pattern))


def checked(
    path: Path, keys: Sequence[PublicKey], *, kept: dict[str, bytes] | None = None, max_age: float | None = None
) -> TrailReport:
    trail = FoundTrail(folder=TrailFolder(path=path.as_uri(), objects=ObjectStore()))
    return trail.check(keys, kept=kept, max_age=max_age)
