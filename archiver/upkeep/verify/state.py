"""The progress of an unfinished verification on local disk.

Reused for the same object (path, size, time of change) and cuts, unless modified shortly before the run: stores round
to seconds. Truncated lines and files with faults are ignored.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from archiver.storage.private_folder import make_below, make_folder
from archiver.upkeep.verify.file import FileToRead, VerifiedFile

FOLDER: Final = "verify"
SETTLED_MS: Final = 10_000
"""How old an object was at least when the run began, by our clock. It covers clocks that are some seconds apart."""

_VERSION: Final = 1
_SUM_BYTES: Final = 16


@dataclass(slots=True)
class VerifyState:
    path: Path
    _known: dict[str, tuple[int, VerifiedFile]] = field(default_factory=dict)
    _descriptor: int = -1
    _began_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    @classmethod
    def open(cls, spool: Path, table_uuid: UUID, *, max_age: float) -> VerifyState:
        """Leave out results older than `max_age` seconds. Raises ConfigError and StorageError."""
        folder = make_folder(spool)
        try:
            below = make_below(folder, FOLDER)
        finally:
            os.close(folder)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(f"{table_uuid}.jsonl", flags, 0o600, dir_fd=below)
        finally:
            os.close(below)
        state = cls(spool / FOLDER / f"{table_uuid}.jsonl", _descriptor=descriptor)
        state._load(time.time() - max_age)
        return state

    def find(self, wanted: FileToRead, size_bytes: int, modified_ms: int | None) -> VerifiedFile | None:
        stored = self._known.get(_key(wanted))
        if (
            stored is None
            or modified_ms is None
            or (stored[1].size_bytes, stored[1].modified_ms) != (size_bytes, modified_ms)
            or stored[0] - modified_ms < SETTLED_MS
        ):
            return None
        return stored[1]

    def __contains__(self, wanted: FileToRead) -> bool:
        return _key(wanted) in self._known

    def keep(self, results: Iterable[tuple[FileToRead, VerifiedFile]]) -> None:
        """Raises nothing if the disk refuses the results."""
        lines = "".join(self._line(file, result) for file, result in results if not result.faults)
        with suppress(OSError):
            os.write(self._descriptor, lines.encode())

    def finish(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _line(self, wanted: FileToRead, result: VerifiedFile) -> str:
        body = {"version": _VERSION, "key": _key(wanted), "at": self._began_ms, "result": result.to_json()}
        text = json.dumps(body, separators=(",", ":"))
        return f"{_sum(text)} {text}\n"

    def _load(self, since: float) -> None:
        with os.fdopen(os.dup(self._descriptor), "rb") as stream:
            stream.seek(0)
            for line in stream:
                checksum, _, text = line.decode("utf-8", "replace").rstrip("\n").partition(" ")
                if checksum != _sum(text):
                    continue
                with suppress(KeyError, TypeError, ValueError):
                    value: Mapping[str, Any] = json.loads(text)
                    if value["version"] == _VERSION and value["at"] >= since * 1000:
                        self._known[value["key"]] = value["at"], VerifiedFile.from_json(value["result"])


def _key(wanted: FileToRead) -> str:
    """A result also depends on delete files and cuts."""
    file = wanted.file
    deletes = sorted(delete.file_path for delete in (*file.position_deletes, *file.equality_deletes))
    parts = (file.path, file.rows, file.size_bytes, file.partitions, file.offsets, file.latest, deletes, wanted.cuts)
    return blake2b(repr(parts).encode(), digest_size=_SUM_BYTES).hexdigest()


def _sum(text: str) -> str:
    return blake2b(text.encode(), digest_size=_SUM_BYTES).hexdigest()
