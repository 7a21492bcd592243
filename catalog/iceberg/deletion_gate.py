"""The gate that every deletion of an object in a store passes through (ADR 66).

A table with `gc.enabled = false` may share its files with another table: one that was registered from its metadata, a
snapshot of it, or one that has its files by `add_files`. Such a table loses no object that a snapshot may name. The
property may be set at any time, so it is read right before an object is deleted, not when a job begins.
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
    """Whether the owner forbids the deletion of files.

    As in Iceberg's Java library, any value but `true`, in upper or lower case, forbids it.
    """
    return properties.get(GC_ENABLED, "true").lower() != "true"


def refuse_shared(properties: Mapping[str, str], table: str, *, refused: str = "no file is deleted") -> None:
    """Raise FilesShared if the owner forbids the deletion of files. `refused` says what isn't done for it."""
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
    """Permits the deletion of objects that snapshots of a table name, or may have named, unless the owner forbids it.

    `properties` reads the table's properties from the catalog. Safe between threads, which read them one at a time.
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
        """Make the permit of a table. `load` loads it again."""
        return cls(lambda: load().properties, table.topic.table)

    def check(self) -> None:
        """Raise FilesShared if the owner forbids the deletion of files now. Raises what reading them raises, too."""
        with self._lock:
            if self._read is None or self._clock() - self._read[0] >= FRESH_SECONDS:
                properties = self._properties_or_error()
                self._read = (self._clock(), properties)
            properties = self._read[1]
        if isinstance(properties, TableError):
            raise properties
        refuse_shared(properties, self._table)

    def _properties_or_error(self) -> Mapping[str, str] | TableError:
        """Read the properties. An error is kept as they are: workers that wait for the lock don't read one by one."""
        try:
            return self._properties()
        except TableError as error:
            return error


@dataclass(frozen=True, slots=True)
class NeverLanded:
    """Permits the deletion of the files of commits that are not in the table and can't come into it any more.

    No snapshot ever named them, so no other table has them.
    """

    paths: Collection[str]


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """Permits the deletion of objects below a folder that only the archiver uses: journal, audit trail, scratch table.

    No table has files there.
    """

    path: str


Permit: TypeAlias = TableObjects | NeverLanded | OwnFolder


def delete(io: FileIO, path: str, permit: Permit) -> None:
    """Delete an object. FilesShared if the permit depends on a table whose owner forbids it.

    Errors of the store are those of `io`.
    """
    _check(path, permit)
    io.delete(path)


def delete_all(io: FileIO, paths: Sequence[str], permit: Permit) -> tuple[str, ...]:
    """Delete objects of a table's metadata; return those that may be left. `archiver orphans` finds them, too.

    A failed deletion is logged, not raised. None is deleted after the owner was found to forbid it, or after the table
    could not be looked at.
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
