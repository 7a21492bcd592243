"""Uploads finished files while the task writes the next ones, in order.

Files that storage denied for good are kept on disk.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Final, Self

from archiver.errors import StorageDenied, StorageError
from archiver.fault_points import FaultPoint, pass_point
from archiver.files.written import SpooledFile, WrittenRange
from archiver.storage.objects import ObjectStore
from archiver.storage.spool import TaskSpool
from catalog.model import DataFileInfo, TranslatedRange

AT_ONCE: Final = 4
"""Files of one range that are uploaded at once."""


class Uploader:
    """After `wait`, `uploaded` is complete, with ranges without files."""

    def __init__(self, objects: ObjectStore, spool: TaskSpool) -> None:
        self._objects = objects
        self._spool = spool
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="upload")
        self._running: deque[Future[float]] = deque()
        self._ended: TranslatedRange | None = None
        self.uploaded: list[TranslatedRange] = []
        self.seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def upload(self, written: WrittenRange) -> None:
        """Waits for earlier ranges. Raises errors of earlier uploads, and of finishing."""
        infos: list[DataFileInfo] = []
        with closing(written.files) as files:
            for file in files:
                if self._ended is not None:
                    self.wait()
                while len(self._running) >= AT_ONCE:
                    self._finish_one()
                self._running.append(self._threads.submit(self._upload, file))
                infos.append(file.info)
        if self._ended is not None:
            self.wait()
        self._ended = written.translated(tuple(infos))

    def wait(self) -> None:
        """Raise StorageError, naming the file, at every later call too: no range may follow a gap."""
        while self._running:
            self._finish_one()
        if self._ended is not None:
            self.uploaded.append(self._ended)
            self._ended = None

    def _finish_one(self) -> None:
        self.seconds += self._running[0].result()
        self._running.popleft()

    def _upload(self, file: SpooledFile) -> float:
        started = time.perf_counter()
        pass_point(FaultPoint.BEFORE_UPLOAD)
        try:
            self._objects.upload(file.local, file.info.path, expected=file.info.size_bytes)
        except StorageDenied as error:
            if error.retryable:  # the file is removed with the task's spool: its name would send people to look for it
                context = {key: value for key, value in error.context.items() if key != "spooled"}
                raise type(error)(error.message, **context) from error
            raise type(error)(error.message, **error.context | {"spooled": self._kept(file)}) from error
        pass_point(FaultPoint.AFTER_UPLOAD)
        file.local.remove()
        return time.perf_counter() - started

    def _kept(self, file: SpooledFile) -> str:
        try:
            return str(self._spool.keep(file.local, file.kept_as))
        except StorageError as error:
            return f"not kept: {error}"
