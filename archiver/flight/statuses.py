"""gRPC statuses of errors."""

from __future__ import annotations

from typing import Final

import grpc

from archiver.errors import (
    AccessDenied,
    AuthenticationFailed,
    BadBatch,
    BatchGap,
    BatchTooOld,
    ClientFenced,
    ClientTaken,
    IntakeEnded,
    IntakeFull,
    UnknownTopic,
)
from schema_mapping.errors import ContextError

_STATUSES: Final = {
    BadBatch: grpc.StatusCode.INVALID_ARGUMENT,
    BatchGap: grpc.StatusCode.FAILED_PRECONDITION,
    BatchTooOld: grpc.StatusCode.ALREADY_EXISTS,
    ClientTaken: grpc.StatusCode.PERMISSION_DENIED,
    ClientFenced: grpc.StatusCode.ABORTED,
    IntakeFull: grpc.StatusCode.RESOURCE_EXHAUSTED,
    IntakeEnded: grpc.StatusCode.UNAVAILABLE,
    AuthenticationFailed: grpc.StatusCode.UNAUTHENTICATED,
    AccessDenied: grpc.StatusCode.PERMISSION_DENIED,
    UnknownTopic: grpc.StatusCode.NOT_FOUND,
}
_TRAILERS: Final = {"expected": "expected-batch-id", "retry_seconds": "retry-after-seconds"}


def status_of(error: ContextError) -> grpc.StatusCode:
    return next((code for kind, code in _STATUSES.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)


def trailers_of(error: ContextError) -> tuple[tuple[str, str], ...]:
    """For programs: the expected batch id, or seconds to wait."""
    return tuple((name, str(error.context[key])) for key, name in _TRAILERS.items() if key in error.context)
