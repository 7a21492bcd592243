"""Warnings on standard error: other libraries' only with `--verbose`."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, TextIO

from schema_mapping.secrets import without_secrets

OURS: Final = ("archiver", "catalog", "schema_mapping")
"""The packages whose warnings are written for operators."""

_VERBOSE: ContextVar[bool] = ContextVar("verbose", default=False)
"""Of the command that runs: its eager option is read before the command has arguments that it could pass on."""


def set_verbose(wanted: bool) -> bool:
    _VERBOSE.set(wanted)
    return wanted


def is_verbose() -> bool:
    return _VERBOSE.get()


@contextmanager
def logs_to_stderr(*, as_json: bool) -> Iterator[None]:
    handler = _StderrHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(JsonLogFormatter() if as_json else TextLines(verbose=is_verbose()))
    if not is_verbose():
        handler.addFilter(is_ours)
    root = logging.getLogger()
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)


def is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in OURS


class _StderrHandler(logging.StreamHandler[TextIO]):
    def emit(self, record: logging.LogRecord) -> None:
        if self.stream.isatty():
            self.stream = sys.stderr
        super().emit(record)


class TextLines(logging.Formatter):
    """Hides secrets in URIs. Tracebacks and module names need `verbose`."""

    def __init__(self, *, verbose: bool = False) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._is_verbose = verbose  # a thread of a job doesn't see the setting of its command

    def format(self, record: logging.LogRecord) -> str:
        cause = record.exc_info[1] if record.exc_info else None
        if self._is_verbose or record.levelno > logging.WARNING:
            return without_secrets(super().format(record))
        head = record.levelname if is_ours(record) else f"{record.levelname} {record.name}"
        reason = "" if cause is None else f": {type(cause).__name__}: {cause}"
        return without_secrets(f"{head}: {record.getMessage()}{reason}")


class JsonLogFormatter(logging.Formatter):
    """Has the shape of the job's events."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "event": "log",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps({name: without_secrets(text) for name, text in line.items()}, ensure_ascii=False)
