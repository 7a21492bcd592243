"""Warnings of libraries and of the archiver itself, on standard error: text for people, JSON lines for machines."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime


def log_to_stderr(*, as_json: bool) -> None:
    """Have warnings and errors written; once for a process."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


class JsonLines(logging.Formatter):
    """One object a line, in the shape of the job's events."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "event": "log",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
