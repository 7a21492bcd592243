"""Warnings of libraries and of the archiver itself, on standard error: text for people, JSON lines for machines."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from schema_mapping.secrets import without_secrets


def log_to_stderr(*, as_json: bool) -> None:
    """Have warnings and errors written; once for a process."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else TextLines("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


class TextLines(logging.Formatter):
    """Plain lines, without secrets in URIs."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return without_secrets(super().format(record))


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
        return json.dumps({name: without_secrets(text) for name, text in line.items()}, ensure_ascii=False)
