"""JSON lines, with `time` and `event` in each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, TextIO, TypeAlias, TypeVar

from schema_mapping.errors import ContextError

E = TypeVar("E")

Line: TypeAlias = tuple[str, dict[str, Any]]
"""The content of one line: the event's name and its values."""


class JsonLines(Generic[E]):
    def __init__(self, lines_of: Callable[[E], Iterable[Line]], out: TextIO | None = None) -> None:
        self._lines_of = lines_of
        self._out = out or sys.stdout

    def __call__(self, event: E) -> None:
        for name, values in self._lines_of(event):
            write_line(name, out=self._out, **values)


def write_line(event: str, *, out: TextIO | None = None, **values: Any) -> None:
    stream = out or sys.stdout
    stream.write(json_line(event, **values) + "\n")
    stream.flush()


def json_line(event: str, **values: Any) -> str:
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **values}
    return json.dumps(line, ensure_ascii=False)


def error_json(error: Exception) -> dict[str, Any]:
    """The same shape for all commands."""
    message, context, retryable = str(error), {}, False
    if isinstance(error, ContextError):
        message, retryable = error.message, error.retryable
        context = {name: str(value) for name, value in error.context.items()}
    return {"kind": type(error).__name__, "message": message, "context": context, "retryable": retryable}


def error_or_none(error: Exception | None) -> dict[str, Any] | None:
    return None if error is None else error_json(error)


def failures_json(failures: Mapping[str, Exception]) -> list[dict[str, Any]]:
    return [{"file": path, "error": error_json(error)} for path, error in sorted(failures.items())]


def finished_line(*, succeeded: bool, dry_run: bool, seconds: float, **more: Any) -> Line:
    return "finished", {"succeeded": succeeded, "dry_run": dry_run, "seconds": round(seconds, 3), **more}
