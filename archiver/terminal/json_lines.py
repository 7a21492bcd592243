"""JSON lines for machines: one object a line, with `time` and `event` in each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Generic, TextIO, TypeAlias, TypeVar

from schema_mapping.errors import ContextError

E = TypeVar("E")

Line: TypeAlias = tuple[str, dict[str, Any]]
"""The content of one line: the event's name and its values."""


class JsonLines(Generic[E]):
    """An observer that writes the lines which `lines_of` makes of each event, by default to standard output."""

    def __init__(self, lines_of: Callable[[E], Iterable[Line]], out: TextIO | None = None) -> None:
        self._lines_of = lines_of
        self._out = out or sys.stdout

    def __call__(self, event: E) -> None:
        """Write the event's lines."""
        for name, values in self._lines_of(event):
            write_line(name, out=self._out, **values)


def write_line(event: str, *, out: TextIO | None = None, **values: Any) -> None:
    """Write one line, by default to standard output."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **values}
    stream = out or sys.stdout
    stream.write(json.dumps(line, ensure_ascii=False) + "\n")
    stream.flush()


def error_json(error: ContextError) -> dict[str, Any]:
    """Turn an error into plain JSON values."""
    context = {name: str(value) for name, value in error.context.items()}
    return {"kind": type(error).__name__, "message": error.message, "context": context, "retryable": error.retryable}
