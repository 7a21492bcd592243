"""Writes warnings of the archiver and its libraries to standard error: text for people, JSON lines for machines."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from schema_mapping.secrets import without_secrets


def log_to_stderr(*, as_json: bool) -> None:
    """Write warnings and errors to standard error. Call it once in a process."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else TextLines("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


class TextLines(logging.Formatter):
    """Formats records as plain lines, with secrets in URIs hidden."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as text."""
        return without_secrets(super().format(record))


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object, in the shape of the job's events."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as JSON."""
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
