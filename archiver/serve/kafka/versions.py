"""ApiVersions: which versions of which API this server answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.serve.kafka.messages import Values

MOST_ASKED: Final = 4
"""The newest version of ApiVersions itself. A newer one is answered in the form of version 0, which all can read."""


def versions(ranges: Iterable[tuple[int, int, int]], error: ErrorCode = ErrorCode.none) -> Values:
    """Answer with the API keys, each with its first and last version."""
    keys: list[dict[str, Any]] = [
        {"api_key": key, "min_version": least, "max_version": most} for key, least, most in sorted(ranges)
    ]
    return {"error_code": error, "api_keys": keys}
