"""Counts answered requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry

from archiver.telemetry.metrics import counter, histogram
from archiver.telemetry.serving.access_log import AccessLog
from archiver.telemetry.serving.answered import NONE, Answered

_MOST_LOOKS: Final = 200
"""How many structures of an answer are looked at for an error."""


class Traffic:
    """Use it from the event loop."""

    def __init__(self, registry: CollectorRegistry | None = None, access_log: AccessLog | None = None) -> None:
        self._log = access_log
        registry = registry or CollectorRegistry()
        self._requests = counter("serve_requests", registry)
        self._seconds = histogram("serve_request_seconds", registry)
        self._bytes = counter("serve_sent_bytes", registry)
        self._refused = counter("serve_partition_errors", registry)

    def answered(self, done: Answered) -> None:
        self._requests.labels(done.api, done.error).inc()
        self._seconds.labels(done.api).observe(done.seconds)
        self._bytes.labels(done.api).inc(done.sent_bytes)
        if self._log is not None:
            self._log.write(done)

    def partition_error(self, error: str) -> None:
        self._refused.labels(error).inc()


def error_in(answer: Mapping[str, Any]) -> str:
    """Looks only at the answer's beginning. Without an error: `none`."""
    left = [answer]
    for _ in range(_MOST_LOOKS):
        if not left:
            return NONE
        part = left.pop(0)
        error = part.get("error_code")
        if error is not None and error.value:
            return str(error.name)
        for value in part.values():
            if isinstance(value, list | tuple):
                left += [item for item in value[:_MOST_LOOKS] if isinstance(item, Mapping)]
    return NONE
