"""The object store, by pyiceberg's FileIO. All errors are subclasses of StorageError."""

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
from archiver.storage.metered import MeteredStream, ReadMeter
from archiver.storage.spool_file import SpoolFile
from archiver.storage.store_errors import may_be_expired, storage_error
from catalog.iceberg import deletion_gate
from catalog.iceberg.deletion_gate import Permit
from catalog.iceberg.file_io import suited
from catalog.iceberg.vended import CredentialSource

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedObject:
    """`modified_ms` is None if the store doesn't say."""

    path: str
    size: int
    modified_ms: int | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Objects by URI (`s3://…`, `file:///…`), for one set of FileIO properties. Picklable without `meter`.

    `attempts` is for errors that may pass. `source` renews credentials, `meter` counts reads of streams.
    """

    properties: Properties = field(default=(), repr=False)
    attempts: int = 5
    source: CredentialVendor | None = None
    meter: ReadMeter | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, properties: Mapping[str, Any], *, attempts: int = 5) -> Self:
        texts = {name: str(value) for name, value in properties.items() if value is not None}
        return cls(tuple(sorted(texts.items())), attempts)

    @classmethod
    def of_table(cls, table: Table) -> Self:
        texts = {name: value for name, value in table.io.properties.items() if isinstance(value, str)}
        return cls(tuple(sorted(texts.items())), source=CredentialSource.of(table))

    @property
    def seconds_left(self) -> float | None:
        return None if self.source is None else seconds_left(self.current)

    @property
    def current(self) -> Properties:
        return self.properties if self.source is None else renewed_ahead(self.source, self.properties)

    def renew(self, failure: StorageError, used: Properties) -> None:
        """Renew denied properties. Raises `failure` if that doesn't help."""
        if self.source is None or not may_be_expired(failure):
            raise failure
        if latest(used) == used:
            renew_after(failure, self.source, used)

    def upload(self, source: SpoolFile, path: str, *, expected: int | None = None) -> int:
        """Copy to `path`, replacing an object; check and return the stored size in bytes.

        Raises StorageError, also if the local file hasn't the `expected` size; the local file stays.
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
        def put() -> None:
            with self.file_io(path).new_output(path).create(overwrite=True) as stream:
                stream.write(data)

        self._attempt(put, "write", path)

    def read(self, path: str) -> bytes:
        def get() -> bytes:
            with self.input(path) as stream:
                return bytes(stream.read())

        return self._attempt(get, "read", path)

    def open(self, path: str) -> InputStream:
        """The caller translates read errors (`store_errors.storage_error`)."""
        stream = self._attempt(lambda: self.input(path), "open", path)
        return stream if self.meter is None else MeteredStream(stream, self.meter)

    def opened(self, path: str, stream: InputStream) -> ListedObject:
        """As of when `stream` was opened."""
        metadata = stream.metadata() if isinstance(stream, NativeFile) else {}
        try:
            changed = datetime.fromisoformat(metadata["Last-Modified"].decode())
            return ListedObject(
                path=path, size=int(metadata["Content-Length"]), modified_ms=round(changed.timestamp() * 1000)
            )
        except (KeyError, ValueError):
            return self.look(path)

    def input(self, path: str) -> InputStream:
        """Without retries. Errors are the client's."""
        return self.file_io(path).new_input(path).open()

    def exists(self, path: str) -> bool:
        """Raise StorageError for a folder. One request."""
        try:
            self.open(path).close()
        except ObjectMissing:
            return False
        return True

    def size(self, path: str) -> int:
        """Raise ObjectMissing if there is none."""
        return self._attempt(lambda: len(self.file_io(path).new_input(path)), "look at", path)

    def look(self, path: str) -> ListedObject:
        """Raise ObjectMissing if there is none."""

        def look() -> ListedObject:
            io = self.file_io(path)
            if not isinstance(io, PyArrowFileIO):
                return ListedObject(path=path, size=len(io.new_input(path)))
            scheme, netloc, key = io.parse_location(path, io.properties)
            info = io.fs_by_scheme(scheme, netloc).get_file_info(key)
            if info.type != FileType.File:
                raise FileNotFoundError(path)
            changed_ms = None if info.mtime_ns is None else info.mtime_ns // 1_000_000
            return ListedObject(path=path, size=info.size, modified_ms=changed_ms)

        return self._attempt(look, "look at", path)

    def list(self, folder: str) -> tuple[ListedObject, ...]:
        """Recursive. Empty without such a folder."""
        return self._look(folder, recursive=True)[0]

    def walk(self, folder: str) -> Iterator[tuple[ListedObject, ...]]:
        """Yield a folder at a time (everything at once in Google's store)."""
        inside, folders = self._look(folder, recursive=False)
        yield inside
        for below in folders:
            yield self.list(below)

    def folders(self, folder: str) -> tuple[str, ...]:
        objects, names = self._look(folder, recursive=False)
        below = (listed.path[len(folder) + 1 :].partition("/") for listed in objects)  # Google's store lists no folder
        return tuple(sorted({*names, *(f"{folder}/{name}" for name, slash, _ in below if slash)}))

    def _look(self, folder: str, *, recursive: bool) -> tuple[tuple[ListedObject, ...], tuple[str, ...]]:
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
            whole = recursive or filesystem.type_name == "gcs"  # which lists no folder that isn't an object
            infos = filesystem.get_file_info(FileSelector(path, recursive=whole, allow_not_found=True))
            named = [(f"{folder}{info.path[len(path) :]}", info) for info in infos]
            objects = tuple(
                ListedObject(
                    path=uri, size=info.size, modified_ms=None if info.mtime_ns is None else info.mtime_ns // 1_000_000
                )
                for uri, info in named
                if info.type == FileType.File
            )
            return objects, tuple(uri for uri, info in named if info.type == FileType.Directory)

        return self._attempt(look, "list", folder)

    def delete(self, path: str, permit: Permit) -> None:
        """Raises FilesShared without permission."""

        def remove() -> None:
            io = self.file_io(path)
            if io.new_input(path).exists():
                deletion_gate.delete(io, path, permit)

        self._attempt(remove, "delete", path)

    def delete_unchanged(self, listed: ListedObject, permit: Permit) -> bool:
        """False if it isn't as listed. Raises FilesShared."""
        try:
            current = self.look(listed.path)
        except ObjectMissing:
            return False
        if current.size != listed.size or _seconds(current.modified_ms) != _seconds(listed.modified_ms):
            return False
        remove = partial(deletion_gate.delete, permit=permit)
        self._attempt(lambda: remove(self.file_io(listed.path), listed.path), "delete", listed.path)
        return True

    def file_io(self, path: str) -> FileIO:
        """Its errors are pyiceberg's."""
        return _file_io(self.current, path.partition("://")[0])

    def reading(self, path: str, read: Callable[[FileIO], T]) -> T:
        """With retries and StorageErrors."""
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
    return None if modified_ms is None else modified_ms // 1_000


@lru_cache(maxsize=16)
def _file_io(properties: tuple[tuple[str, str], ...], scheme: str) -> FileIO:
    location = f"{scheme}://"
    # A buffer would hide the stream's flush.
    return suited(load_file_io({BUFFER_SIZE: "0"} | dict(properties), location), location)
