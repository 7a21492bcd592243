"""The gate of every deletion in a store (ADR 66).

Tables with `gc.enabled = false` may share files. The property is read right before each deletion.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final, Self, TypeAlias, assert_never

from pyiceberg.io import FileIO

from catalog.errors import FilesShared, TableError

if TYPE_CHECKING:
    from catalog.iceberg.archive_table import ArchiveTable

GC_ENABLED: Final = "gc.enabled"
"""The table property by which an owner forbids the deletion of files."""
FRESH_SECONDS: Final = 1.0
"""A property that was read this long ago is read again."""

_LOG = logging.getLogger(__name__)


def is_shared(properties: Mapping[str, str]) -> bool:
    """By any value but `true` (any case), as in Iceberg's Java library."""
    return properties.get(GC_ENABLED, "true").lower() != "true"


def refuse_shared(properties: Mapping[str, str], table: str, *, refused: str = "no file is deleted") -> None:
    """Raises FilesShared. `refused` names the skipped work."""
    if is_shared(properties):
        value = properties[GC_ENABLED]
        raise FilesShared(
            f"{refused}: the table property `{GC_ENABLED}` is `{value}`, as another table may share this table's files."
            f" When no other table needs them any more, run ALTER TABLE {table} SET TBLPROPERTIES ('{GC_ENABLED}' ="
            " 'true'), and then this command again",
            table=table,
            property=GC_ENABLED,
            value=value,
        )


class TableObjects:
    """Permits deletions unless the owner forbids them. Thread-safe.

    `properties` reads from the catalog, one thread at a time.
    """

    def __init__(
        self,
        properties: Callable[[], Mapping[str, str]],
        table: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._properties = properties
        self._table = table
        self._clock = clock
        self._lock = Lock()
        self._read: tuple[float, Mapping[str, str] | TableError] | None = None

    @classmethod
    def of(cls, load: Callable[[], ArchiveTable], table: ArchiveTable) -> Self:
        return cls(lambda: load().properties, table.topic.table)

    def check(self) -> None:
        """Raise FilesShared if deletion is forbidden now, or the TableError of reading the properties."""
        with self._lock:
            if self._read is None or self._clock() - self._read[0] >= FRESH_SECONDS:
                properties = self._properties_or_error()
                self._read = (self._clock(), properties)
            properties = self._read[1]
        if isinstance(properties, TableError):
            raise properties
        refuse_shared(properties, self._table)

    def _properties_or_error(self) -> Mapping[str, str] | TableError:
        """Keep the error for all waiting workers."""
        try:
            return self._properties()
        except TableError as error:
            return error


@dataclass(frozen=True, slots=True)
class NeverLanded:
    """Permits deleting files of commits that never land, in no snapshot or other table."""

    paths: Collection[str]


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """Only the archiver uses it: journal, audit trail, scratch table."""

    path: str


Permit: TypeAlias = TableObjects | NeverLanded | OwnFolder


def delete(io: FileIO, path: str, permit: Permit) -> None:
    """Raises FilesShared if the owner forbids it, and errors of `io`."""
    _check(path, permit)
    io.delete(path)


def delete_all(io: FileIO, paths: Sequence[str], permit: Permit) -> tuple[str, ...]:
    """Delete metadata objects; return the remaining ones. Failures are logged.

    Stops when the owner forbids it or the table can't be read.
    """
    left: list[str] = []
    for number, path in enumerate(paths):
        try:
            delete(io, path, permit)
        except FileNotFoundError:
            continue  # the catalog has deleted it already
        except FilesShared as error:
            _LOG.warning("files of metadata stay in the store: %s", error)
            return (*left, *paths[number:])
        except TableError:
            _LOG.warning("left behind, as the table can't be looked at: %s", path, exc_info=True)
            return (*left, *paths[number:])
        except (OSError, ValueError):
            _LOG.warning("left behind, nothing refers to it: %s", path, exc_info=True)
            left.append(path)
    return tuple(left)


def _check(path: str, permit: Permit) -> None:
    match permit:
        case TableObjects():
            permit.check()
        case NeverLanded(paths):
            if path not in paths:
                raise RuntimeError(f"it isn't known that no snapshot ever named {path}")
        case OwnFolder(folder):
            if not path.startswith(f"{folder.rstrip('/')}/"):
                raise RuntimeError(f"{path} is not below {folder}")
        case _ as never:
            assert_never(never)
