"""Classifies clients' errors. Only this module and `store_refusals` read their texts."""

from __future__ import annotations

import errno
import re
from typing import Any

from archiver.errors import ObjectMissing, StorageDenied, StorageError, StorageUnavailable
from catalog.iceberg.answer_text import answer_text
from catalog.iceberg.store_refusals import checksum_advice, denial_advice, is_denied

_MISSING = re.compile(
    r"NO_SUCH_KEY|NoSuchKey|NO_SUCH_BUCKET|NoSuchBucket|RESOURCE_NOT_FOUND|Path does not exist|Azure Error: \[\w*\] 404"
)
_PASSING = re.compile(
    r"NETWORK_CONNECTION|SLOW_DOWN|SlowDown|THROTTLING|REQUEST_TIMEOUT|RequestTimeout|SERVICE_UNAVAILABLE"
    r"|INTERNAL_FAILURE|InternalError|curlCode|[Tt]imed out|[Tt]imeout|HTTP (?:status|response code:) (?:429|50[0234])"
    r"|status code: (?:429|50[0234])|error sending request"
    r"|Azure Error: \[\w*\] (?:429|50[0234]|Fail to get a new connection)"
    r"|Status\((?:UNAVAILABLE|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED|INTERNAL)"
)
_WRITES = frozenset(("upload", "write"))
_MAYBE_EXPIRED = re.compile(r"HTTP status 400|status code: 400|Failed to flush response stream")
_PASSING_ERRNO = frozenset(
    (errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT, errno.EHOSTUNREACH)
)


def storage_error(error: Exception, *, verb: str, path: str, **context: Any) -> StorageError:
    """A StorageError is returned unchanged."""
    if isinstance(error, StorageError):
        return error
    text = str(error)
    writes = verb in _WRITES
    kind, advice = _verdict(error, text, path, writes=writes)
    if writes and kind in (StorageError, StorageUnavailable) and (checksums := checksum_advice(error, path)):
        advice = f"{advice}. {checksums}"
    return kind(f"can't {verb} the object: {advice}", file=path, **context, cause=answer_text(text))


def may_be_expired(failure: StorageError) -> bool:
    """Whether credentials may have expired: S3 answers 400, without a reason."""
    return isinstance(failure, StorageDenied) or bool(_MAYBE_EXPIRED.search(str(failure.context.get("cause", ""))))


def _verdict(error: Exception, text: str, path: str, *, writes: bool) -> tuple[type[StorageError], str]:
    if is_denied(error):
        return StorageDenied, denial_advice(error, path, writes=writes)
    if isinstance(error, FileNotFoundError) or _MISSING.search(text):
        return ObjectMissing, "it, or its bucket, isn't there. Restore it, or correct the address of the store"
    if isinstance(error, (ConnectionError, TimeoutError)) or _is_passing(error) or _PASSING.search(text):
        return StorageUnavailable, "the store doesn't answer. Check its address and that it runs; trying again may help"
    return StorageError, "the client gave up; see the cause"


def _is_passing(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in _PASSING_ERRNO
