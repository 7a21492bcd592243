"""JSON lines for machines: one object a line, each with `time` and `event`."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from schema_mapping.errors import ContextError


def wants_json(chosen: bool | None) -> bool:
    """Whether output is for a machine: as `--json/--no-json` says, else wherever it doesn't go to a terminal."""
    return not sys.stdout.isatty() if chosen is None else chosen


def write_line(event: str, *, out: TextIO | None = None, **values: Any) -> None:
    """Write one event; `out` is standard output by default."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **values}
    stream = out or sys.stdout
    stream.write(json.dumps(line, ensure_ascii=False) + "\n")
    stream.flush()


def error_json(error: ContextError) -> dict[str, Any]:
    """An error as plain JSON values."""
    context = {name: str(value) for name, value in error.context.items()}
    return {"kind": type(error).__name__, "message": error.message, "context": context, "retryable": error.retryable}
