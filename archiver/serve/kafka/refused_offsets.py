"""OffsetFetch errors that clients neither take for "no offsets" nor wait on for ever.

librdkafka repeats OffsetFetch at the same node on COORDINATOR_LOAD_IN_PROGRESS, never on NOT_COORDINATOR, so the latter
is only used if other nodes may have the registry. Neither helps librdkafka before 2.4 (versions 1 and 7).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.serve.kafka.service import Request, Service

_WITH_GROUPS: Final = 8
_WITH_EPOCHS: Final = 9
_NAMED: Final = frozenset(
    {ErrorCode.coordinator_load_in_progress, ErrorCode.not_coordinator, ErrorCode.stale_member_epoch}
)
_NONE: Final = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}
_STAYING: Final = frozenset({0, 1, 7})


async def no_offsets_here(service: Service, request: Request, asked: Any, error: ErrorCode) -> dict[str, Any]:
    error, seconds = refused_here(service, request.version, error)
    await late(seconds, service.ending)
    return await no_offsets(request, asked, error)


def refused_here(service: Service, version: int, error: ErrorCode) -> tuple[ErrorCode, float]:
    """Return the error and the seconds before it: librdkafka repeats at once and reports each error."""
    has_others = service.cluster.others is not None
    if error is ErrorCode.coordinator_not_available and has_others and version not in _STAYING:
        return ErrorCode.not_coordinator, service.redirects.registry_away
    return error, service.redirects.coordinator if error is ErrorCode.not_coordinator else 0.0


async def late(seconds: float, ending: asyncio.Future[None]) -> None:
    if seconds:
        await asyncio.wait({ending}, timeout=seconds)


async def no_offsets(request: Request, asked: Any, error: ErrorCode) -> dict[str, Any]:
    if error is ErrorCode.coordinator_not_available:
        error = ErrorCode.coordinator_load_in_progress
    if request.version < _WITH_GROUPS:
        return {"error_code": error, "topics": await _topics(request, asked, error)}
    is_named = request.version >= _WITH_EPOCHS and error in _NAMED
    topics = await _topics(request, asked, ErrorCode.stale_member_epoch) if is_named else []
    return {"group_id": asked.group_id, "error_code": error, "topics": topics}


async def _topics(request: Request, asked: Any, error: ErrorCode) -> list[dict[str, Any]]:
    return [
        {
            "name": getattr(topic, "name", None),
            "topic_id": getattr(topic, "topic_id", None),
            "partitions": await request.listed(
                {"partition_index": partition, "error_code": error, **_NONE} for partition in topic.partition_indexes
            ),
        }
        async for topic in request.in_turns(asked.topics or ())
    ]
