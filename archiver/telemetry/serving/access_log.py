"""A sampled access log; the file may be rotated.

A thread writes it. If the disk is too slow, lines are dropped and counted.
"""

from __future__ import annotations

import json
import logging
import queue
import random
from dataclasses import asdict
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler
from pathlib import Path
from typing import Final, Self

from archiver.errors import ConfigError
from archiver.telemetry.serving.answered import Answered

_MOST_WAITING: Final = 10_000


class _LineQueue(QueueHandler):
    def __init__(self, waiting: queue.Queue[logging.LogRecord]) -> None:
        super().__init__(waiting)
        self.left_out = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self.left_out += 1


class AccessLog:
    """A context manager."""

    def __init__(self, path: Path, *, share: float = 1.0) -> None:
        """`share` is chosen at random. Raises ConfigError if the file can't be written."""
        self._share = share
        try:
            file = WatchedFileHandler(path, encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"the access log can't be written: {error.strerror}", key="serve.access_log", path=str(path)
            ) from error
        waiting: queue.Queue[logging.LogRecord] = queue.Queue(_MOST_WAITING)
        self._lines = _LineQueue(waiting)
        self._file = file
        self._listener = QueueListener(waiting, file)

    @property
    def left_out(self) -> int:
        return self._lines.left_out

    def write(self, done: Answered) -> None:
        if self._share < 1.0 and random.random() >= self._share:  # noqa: S311 - a sample
            return
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": time, **asdict(done), "seconds": round(done.seconds, 6)}
        text = json.dumps({name: value for name, value in line.items() if value is not None}, ensure_ascii=False)
        self._lines.enqueue(logging.LogRecord("access", logging.INFO, "", 0, text, None, None))

    def __enter__(self) -> Self:
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.stop()
        self._file.close()
