"""Uploads finished files, one at a time, while the task writes the next file.

So a task's spool holds at most two files. Files are uploaded in the order of their ranges: after a failure, the ranges
before it are still good. A file whose upload storage denied is kept on disk and named in the error, unless the error is
retryable: Kafka still has its records then.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from archiver.errors import StorageDenied, StorageError
from archiver.fault_points import FaultPoint, pass_point
from archiver.storage.objects import ObjectStore
from archiver.storage.spool import TaskSpool
from archiver.storage.spool_file import SpoolFile
from catalog.model import TranslatedRange


class Uploader:
    """Uploads the files of finished ranges in order. A context manager.

    `uploaded` lists the ranges whose file is in the object store, and the ranges that have no file.
    """

    def __init__(self, objects: ObjectStore, spool: TaskSpool) -> None:
        self._objects = objects
        self._spool = spool
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="upload")
        self._running: Future[None] | None = None
        self.uploaded: list[TranslatedRange] = []
        self.seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def put(self, finished: TranslatedRange, local: SpoolFile | None) -> None:
        """Start to upload the range's file (None: it has none) once the upload before is done.

        Raises the error of the upload before, as `wait` does.
        """
        self.wait()
        self._running = self._thread.submit(self._upload, finished, local)

    def wait(self) -> None:
        """Wait until everything that was put is uploaded.

        Raises the leaves of StorageError, naming the file. After a failure every later call raises it again: no range
        may follow a gap.
        """
        if self._running is not None:
            self._running.result()

    def _upload(self, finished: TranslatedRange, local: SpoolFile | None) -> None:
        if finished.file is not None and local is not None:
            started = time.perf_counter()
            pass_point(FaultPoint.BEFORE_UPLOAD)
            try:
                self._objects.upload(local, finished.file.path, expected=finished.file.size_bytes)
            except StorageDenied as error:
                if (
                    error.retryable
                ):  # the file is removed with the task's spool: its name would send people to look for it
                    context = {key: value for key, value in error.context.items() if key != "spooled"}
                    raise type(error)(error.message, **context) from error
                name = f"{finished.topic}-{finished.partition}-{finished.start_offset:020d}{local.path.suffix}"
                raise type(error)(error.message, **error.context | {"spooled": self._kept(local, name)}) from error
            pass_point(FaultPoint.AFTER_UPLOAD)
            local.remove()
            self.seconds += time.perf_counter() - started
        self.uploaded.append(finished)

    def _kept(self, local: SpoolFile, name: str) -> str:
        """Keep the file; return where it is now, or why it could not be kept."""
        try:
            return str(self._spool.keep(local, name))
        except StorageError as error:
            return f"not kept: {error}"
