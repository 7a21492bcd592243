"""The object store: upload whole files, open objects for reading, list and delete them, by pyiceberg's FileIO.

An `ObjectStore` is a value: the FileIO properties as the catalog got them. So it can be sent to Spark's Python workers.
Each process makes its client once. All errors are subclasses of StorageError. Each names the file and says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Self, TypeVar

from pyarrow import ArrowException, NativeFile
from pyarrow.fs import FileSelector, FileType
from pyiceberg.io import FileIO, InputStream, load_file_io
from pyiceberg.io.pyarrow import BUFFER_SIZE, PyArrowFileIO
from pyiceberg.table import Table
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from archiver.errors import ObjectMissing, StorageError
from archiver.storage.bounded_copy import copy
from archiver.storage.credentials import CredentialVendor, Properties, latest, renew_after, renewed_ahead, seconds_left
from archiver.storage.spool_file import SpoolFile
from archiver.storage.store_errors import may_be_expired, storage_error
from catalog.iceberg import deletion_gate
from catalog.iceberg.deletion_gate import Permit
from catalog.iceberg.file_io import suited
from catalog.iceberg.vended import CredentialSource

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedObject:
    """An object's URI, size in bytes, and time of its last change (ms since 1970; None if the store doesn't say)."""

    path: str
    size: int
    modified_ms: int | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Objects by URI (`s3://…`, `file:///…`), for one set of FileIO properties.

    `attempts` is how often a call is tried if its error may pass, with back-off and jitter. If `source` is given, the
    store asks it for new credentials when the old ones are about to expire or were denied.
    """

    properties: Properties = field(default=(), repr=False)
    attempts: int = 5
    source: CredentialVendor | None = None

    @classmethod
    def of(cls, properties: Mapping[str, Any], *, attempts: int = 5) -> Self:
        """Make a store from FileIO properties: the catalog's section of the configuration, or a table's `io`."""
        texts = {name: str(value) for name, value in properties.items() if value is not None}
        return cls(tuple(sorted(texts.items())), attempts)

    @classmethod
    def of_table(cls, table: Table) -> Self:
        """Make the store of a loaded table. It uses the credentials that the catalog vends for this table."""
        texts = {name: value for name, value in table.io.properties.items() if isinstance(value, str)}
        return cls(tuple(sorted(texts.items())), source=CredentialSource.of(table))

    @property
    def seconds_left(self) -> float | None:
        """How long the credentials are still valid. None if they are our own, or the catalog gave no end."""
        return None if self.source is None else seconds_left(self.current)

    @property
    def current(self) -> Properties:
        """The properties that are used now: those given, or what took their place."""
        return self.properties if self.source is None else renewed_ahead(self.source, self.properties)

    def renew(self, failure: StorageError, used: Properties) -> None:
        """Have properties that were denied renewed; what failed may then be done again. Raises where that's no use."""
        if self.source is None or not may_be_expired(failure):
            raise failure
        if latest(used) == used:
            renew_after(failure, self.source, used)

    def upload(self, source: SpoolFile, path: str, *, expected: int | None = None) -> int:
        """Copy the local file to `path`, check that it arrived whole, and return its size in bytes.

        Raises StorageError if the local file doesn't have the `expected` size: then somebody else wrote to it. A second
        call with the same file does no harm: it replaces the object. The local file stays, and if the upload fails, the
        error names it.
        """
        if expected is not None and source.size != expected:
            raise StorageError(
                "the local file is not as long as it was written: something else writes to the spool; run again",
                file=path,
                spooled=str(source),
                local_bytes=source.size,
                written_bytes=expected,
            )
        return self._attempt(lambda: self._upload_once(source, path), "upload", path, spooled=str(source))

    def write(self, path: str, data: bytes) -> None:
        """Write a small object that holds exactly `data`. An object at this path is replaced."""

        def put() -> None:
            with self.file_io(path).new_output(path).create(overwrite=True) as stream:
                stream.write(data)

        self._attempt(put, "write", path)

    def read(self, path: str) -> bytes:
        """Read a small object whole."""

        def get() -> bytes:
            with self.input(path) as stream:
                return bytes(stream.read())

        return self._attempt(get, "read", path)

    def open(self, path: str) -> InputStream:
        """Open an object for reading at any position.

        The caller closes it, and turns errors of its reads into StorageErrors (`store_errors.storage_error`).
        """
        return self._attempt(lambda: self.input(path), "open", path)

    def opened(self, path: str, stream: InputStream) -> ListedObject:
        """Return size and time of change of an object as they were when `stream` was opened.

        A store that told them in its answer isn't asked again.
        """
        told = stream.metadata() if isinstance(stream, NativeFile) else {}
        try:
            changed = datetime.fromisoformat(told["Last-Modified"].decode())
            return ListedObject(
                path=path, size=int(told["Content-Length"]), modified_ms=round(changed.timestamp() * 1000)
            )
        except (KeyError, ValueError):
            return self.look(path)

    def input(self, path: str) -> InputStream:
        """Open an object once, without retries. Errors are the client's own."""
        return self.file_io(path).new_input(path).open()

    def exists(self, path: str) -> bool:
        """Whether there is an object at `path`. It is opened for that, in one request. StorageError for a folder."""
        try:
            self.open(path).close()
        except ObjectMissing:
            return False
        return True

    def size(self, path: str) -> int:
        """Return the object's size in bytes. Raises ObjectMissing if there is none."""
        return self._attempt(lambda: len(self.file_io(path).new_input(path)), "look at", path)

    def look(self, path: str) -> ListedObject:
        """Return the object's size and the time of its last change. Raises ObjectMissing if there is none."""

        def look() -> ListedObject:
            io = self.file_io(path)
            if not isinstance(io, PyArrowFileIO):
                return ListedObject(path=path, size=len(io.new_input(path)))
            scheme, netloc, place = io.parse_location(path, io.properties)
            found = io.fs_by_scheme(scheme, netloc).get_file_info(place)
            if found.type != FileType.File:
                raise FileNotFoundError(path)
            changed_ms = None if found.mtime_ns is None else found.mtime_ns // 1_000_000
            return ListedObject(path=path, size=found.size, modified_ms=changed_ms)

        return self._attempt(look, "look at", path)

    def list(self, folder: str) -> tuple[ListedObject, ...]:
        """List every object below a folder, at any depth. Empty if there is no such folder."""
        return self._look(folder, recursive=True)[0]

    def walk(self, folder: str) -> Iterator[tuple[ListedObject, ...]]:
        """List every object below a folder, in parts.

        First come the objects in the folder, then those of each folder in it. In Google's store all come at once.
        """
        inside, folders = self._look(folder, recursive=False)
        yield inside
        for each in folders:
            yield self.list(each)

    def folders(self, folder: str) -> tuple[str, ...]:
        """List the folders in a folder. Empty if there is no such folder."""
        objects, found = self._look(folder, recursive=False)
        below = (each.path[len(folder) + 1 :].partition("/") for each in objects)  # Google's store tells of no folder
        return tuple(sorted({*found, *(f"{folder}/{name}" for name, slash, _ in below if slash)}))

    def _look(self, folder: str, *, recursive: bool) -> tuple[tuple[ListedObject, ...], tuple[str, ...]]:
        """The objects and the folders in a folder, or below it if `recursive`."""

        def look() -> tuple[tuple[ListedObject, ...], tuple[str, ...]]:
            io = self.file_io(folder)
            if not isinstance(io, PyArrowFileIO):
                raise StorageError(
                    "objects can't be listed by this FileIO: remove `py-io-impl`, so that pyarrow is used",
                    file=folder,
                    io=type(io).__name__,
                )
            scheme, netloc, path = io.parse_location(folder, io.properties)
            filesystem = io.fs_by_scheme(scheme, netloc)
            whole = recursive or filesystem.type_name == "gcs"  # which tells of no folder that isn't an object
            found = filesystem.get_file_info(FileSelector(path, recursive=whole, allow_not_found=True))
            named = [(f"{folder}{each.path[len(path) :]}", each) for each in found]
            objects = tuple(
                ListedObject(
                    path=uri, size=each.size, modified_ms=None if each.mtime_ns is None else each.mtime_ns // 1_000_000
                )
                for uri, each in named
                if each.type == FileType.File
            )
            return objects, tuple(uri for uri, each in named if each.type == FileType.Directory)

        return self._attempt(look, "list", folder)

    def delete(self, path: str, permit: Permit) -> None:
        """Remove the object. It is no error if there is none. FilesShared if the permit doesn't allow it now."""

        def remove() -> None:
            io = self.file_io(path)
            if io.new_input(path).exists():
                deletion_gate.delete(io, path, permit)

        self._attempt(remove, "delete", path)

    def delete_unchanged(self, listed: ListedObject, permit: Permit) -> bool:
        """Remove an object if it is as it was listed. False where it is gone, or was written again.

        FilesShared if the permit doesn't allow it now.
        """
        try:
            found = self.look(listed.path)
        except ObjectMissing:
            return False
        if found.size != listed.size or _seconds(found.modified_ms) != _seconds(listed.modified_ms):
            return False
        remove = partial(deletion_gate.delete, permit=permit)
        self._attempt(lambda: remove(self.file_io(listed.path), listed.path), "delete", listed.path)
        return True

    def file_io(self, path: str) -> FileIO:
        """Return pyiceberg's client for the store of this path. Its errors are the client's own."""
        return _file_io(self.current, path.partition("://")[0])

    def reading(self, path: str, read: Callable[[FileIO], T]) -> T:
        """Return what `read` makes of pyiceberg's client, with retries, renewed credentials and StorageErrors."""
        return self._attempt(lambda: read(self.file_io(path)), "read", path)

    def _upload_once(self, source: SpoolFile, path: str) -> int:
        expected = source.size
        with source.reader() as local, self.file_io(path).new_output(path).create(overwrite=True) as remote:
            copy(local, remote)
        arrived = len(self.file_io(path).new_input(path))
        if arrived != expected:
            raise StorageError(
                "the object's size differs from the local file's: something else writes or cuts it. "
                "Find out what does, and run again: the upload replaces it",
                file=path,
                local_bytes=expected,
                object_bytes=arrived,
            )
        return arrived

    def _attempt(self, call: Callable[[], T], verb: str, path: str, **context: Any) -> T:
        def once() -> T:
            try:
                return call()
            except (OSError, ValueError, ArrowException) as error:
                raise storage_error(error, verb=verb, path=path, **context) from error

        def tried() -> T:
            used = self.current
            try:
                return once()
            except StorageError as failure:
                self.renew(failure, used)
            return once()

        retrying = Retrying(
            stop=stop_after_attempt(self.attempts),
            wait=wait_random_exponential(multiplier=0.2, max=5.0),
            retry=retry_if_exception(lambda error: bool(getattr(error, "retryable", False))),
            reraise=True,
        )
        return retrying(tried)


def _seconds(modified_ms: int | None) -> int | None:
    """Whole seconds: where one object is looked at, stores tell no more."""
    return None if modified_ms is None else modified_ms // 1_000


@lru_cache(maxsize=16)
def _file_io(properties: tuple[tuple[str, str], ...], scheme: str) -> FileIO:
    location = f"{scheme}://"
    # A buffer would hide the stream's flush.
    return suited(load_file_io({BUFFER_SIZE: "0"} | dict(properties), location), location)
