"""An archive of one version: state of servers, and records that a client read (docs/testing.md)."""

from __future__ import annotations

import base64
import io
import json
import lzma
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.support.archive.readers import Seen

VECTORS = Path(__file__).parents[2] / "vectors"
_ABOUT, _RECORDS, _REGISTRY, _OBJECTS, _BROKER = (
    "archive.json",
    "records.jsonl.xz",
    "registry.sql.xz",
    "objects.tar.xz",
    "kafka.tar.xz",
)


class Fate(StrEnum):
    ARCHIVED = "archived"
    STAGED = "staged"
    """Uploaded and staged by a job that was killed before its commit."""
    WAITING = "waiting"
    """In Kafka alone: no job has read it yet."""
    ERASED = "erased"
    RETIRED = "retired"
    DELETED = "deleted"
    """Deleted by another engine; an archiver may bring it back."""
    ACCEPTED = "accepted"
    """Deleted by another engine, and noted as removed on purpose."""
    LOST = "lost"
    """The log lost it before it was archived, and an operator accepted that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRecord:
    topic: str
    seen: Seen
    fate: Fate

    @classmethod
    def of_json(cls, line: Mapping[str, Any]) -> KeptRecord:
        seen = Seen(
            line["partition"],
            line["offset"],
            line["timestamp_type"],
            line["timestamp"],
            _bytes(line["key"]),
            _bytes(line["value"]),
            tuple((name, _bytes(value)) for name, value in line["headers"]),
        )
        return cls(topic=line["topic"], seen=seen, fate=Fate(line["fate"]))

    def to_json(self) -> dict[str, Any]:
        plain = self.seen._asdict()
        headers = [[name, _text(value)] for name, value in self.seen.headers]
        coded = {"key": _text(self.seen.key), "value": _text(self.seen.value), "headers": headers}
        return {"topic": self.topic, **plain, **coded, "fate": str(self.fate)}


@dataclass(frozen=True, slots=True)
class KeptArchive:
    folder: Path

    @classmethod
    def of_version(cls, version: str) -> KeptArchive:
        return cls(VECTORS / f"archive-{version}")

    @property
    def about(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / _ABOUT).read_text()))

    @property
    def protos(self) -> tuple[Path, ...]:
        return tuple(sorted(self.folder.glob("*.proto")))

    @property
    def public_key(self) -> Path:
        return self.folder / "audit.pub"

    def records(self) -> tuple[KeptRecord, ...]:
        lines = lzma.decompress((self.folder / _RECORDS).read_bytes()).splitlines()
        return tuple(KeptRecord.of_json(json.loads(line)) for line in lines)

    def registry(self) -> bytes:
        return lzma.decompress((self.folder / _REGISTRY).read_bytes())

    def objects(self) -> dict[str, bytes]:
        with tarfile.open(self.folder / _OBJECTS) as archive:
            return {member.name: _content(archive, member) for member in archive if member.isfile()}

    def unpack_broker(self, folder: Path) -> None:
        with tarfile.open(self.folder / _BROKER) as archive:
            archive.extractall(folder, filter="data")

    def write(
        self,
        about: Mapping[str, Any],
        records: Iterable[KeptRecord],
        *,
        registry: bytes,
        objects: Mapping[str, bytes],
        broker: Path,
    ) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / _ABOUT).write_text(json.dumps(about, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
        lines = (json.dumps(record.to_json(), separators=(",", ":")) + "\n" for record in records)
        (self.folder / _RECORDS).write_bytes(_packed("".join(lines).encode()))
        (self.folder / _REGISTRY).write_bytes(_packed(registry))
        (self.folder / _OBJECTS).write_bytes(_packed(_tar(objects)))
        logs = {path.relative_to(broker).as_posix(): path.read_bytes() for path in broker.rglob("*") if path.is_file()}
        (self.folder / _BROKER).write_bytes(_packed(_tar({name: logs[name] for name in logs if name != ".lock"})))


def _tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            archive.addfile(member, io.BytesIO(files[name]))
    return buffer.getvalue()


def _packed(data: bytes) -> bytes:
    return lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
