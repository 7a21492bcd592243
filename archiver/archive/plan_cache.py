"""A local cache of manifests: a million entries take minutes to read.

Entries need a valid checksum and a private folder.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyiceberg.manifest import ManifestFile

from archiver.archive.file_columns import columns_of

LEAST_FILES: Final = 500
"""Manifests with fewer files aren't cached: reading them is fast."""

UNUSED_SECONDS: Final = 30 * 86_400.0
FOLDER: Final = "plans"
_VERSION: Final = 2
_SUM_BYTES: Final = 32
_SUFFIX: Final = ".columns"

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlanCache:
    folder: Path

    @classmethod
    def below(cls, spool: Path) -> PlanCache | None:
        """Return None if other users could change the folder."""
        folder = spool / FOLDER
        try:
            spool.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            above, status = spool.lstat(), folder.lstat()
        except OSError:
            return None
        # A user who can write to the spool can replace the cache's folder by another one.
        return cls(folder) if _is_ours(above, 0o022) and _is_ours(status, 0o077) else None

    def find(self, manifest: ManifestFile, counted: frozenset[int]) -> tuple[pa.RecordBatch, ...] | None:
        key = _key(manifest, counted)
        path = self._path(key)
        try:
            content = memoryview(path.read_bytes())
            if _sum(key, content[_SUM_BYTES:]) != bytes(content[:_SUM_BYTES]):
                return None
            with pa.ipc.open_stream(pa.py_buffer(content[_SUM_BYTES:])) as reader:
                batches = tuple(reader)
                is_known = reader.schema.equals(columns_of(counted), check_metadata=True)
            os.utime(path)
        except (OSError, pa.ArrowException):
            return None
        return batches if is_known else None

    def keep(self, manifest: ManifestFile, counted: frozenset[int], batches: tuple[pa.RecordBatch, ...]) -> None:
        """Failures are ignored."""
        if sum(batch.num_rows for batch in batches) < LEAST_FILES:
            return
        key = _key(manifest, counted)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, columns_of(counted)) as writer:
            for batch in batches:
                writer.write_batch(batch)
        content = sink.getvalue()
        with suppress(OSError):
            number, name = tempfile.mkstemp(dir=self.folder)
            try:
                with os.fdopen(number, "wb") as stream:
                    stream.write(_sum(key, memoryview(content)))
                    stream.write(content)
                Path(name).replace(self._path(key))
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise

    def forget_all(self) -> None:
        try:
            entries = list(self.folder.iterdir())
        except OSError as error:
            _LOG.warning("%s can't be emptied: %s; remove what is in it", self.folder, error)
            return
        for path in entries:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                _LOG.warning("%s, which has values of partitions, can't be removed: %s; remove it", path, error)

    def forget_unused(self) -> None:
        """Also remove incomplete files of killed processes."""
        with suppress(OSError):
            for path in self.folder.iterdir():
                with suppress(FileNotFoundError):
                    if time.time() - path.stat().st_mtime > UNUSED_SECONDS:
                        path.unlink()

    def _path(self, key: bytes) -> Path:
        return self.folder / f"{blake2b(key, digest_size=16).hexdigest()}{_SUFFIX}"


def _is_ours(found: os.stat_result, others: int) -> bool:
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & others


def _key(manifest: ManifestFile, counted: frozenset[int]) -> bytes:
    """Includes what entries inherit from the manifest list."""
    of = manifest
    parts = (_VERSION, of.manifest_path, of.manifest_length, of.sequence_number, of.partition_spec_id, *sorted(counted))
    return repr(parts).encode()


def _sum(key: bytes, content: memoryview) -> bytes:
    return blake2b(content, digest_size=_SUM_BYTES, salt=blake2b(key, digest_size=16).digest()).digest()
