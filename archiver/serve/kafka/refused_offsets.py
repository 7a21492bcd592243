"""OffsetFetch errors that clients neither take for "no offsets" nor wait on for ever.

librdkafka repeats OffsetFetch at the same node on COORDINATOR_LOAD_IN_PROGRESS, never on NOT_COORDINATOR, so the latter
is only used if other nodes may have the registry. Neither helps librdkafka before 2.4 (versions 1 and 7).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.serve.kafka.service import Request

_WITH_GROUPS: Final = 8
_WITH_EPOCHS: Final = 9
_NAMED: Final = frozenset(
    {ErrorCode.coordinator_load_in_progress, ErrorCode.not_coordinator, ErrorCode.stale_member_epoch}
)
_NONE: Final = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}
_STAYING: Final = frozenset({0, 1, 7})
_LOOKED_FOR_SECONDS: Final = 0.3
_REGISTRY_AWAY_SECONDS: Final = 3.0
"""If the registry is away from all nodes, they send their clients to one another for as long."""


async def no_offsets_here(
    request: Request, asked: Any, error: ErrorCode, *, has_others: bool, ending: asyncio.Future[None]
) -> dict[str, Any]:
    error, seconds = refused_here(request.version, error, has_others=has_others)
    await late(seconds, ending)
    return await no_offsets(request, asked, error)


def refused_here(version: int, error: ErrorCode, *, has_others: bool) -> tuple[ErrorCode, float]:
    """Return the error and the seconds before it: librdkafka repeats at once and reports each error."""
    if error is ErrorCode.coordinator_not_available and has_others and version not in _STAYING:
        return ErrorCode.not_coordinator, _REGISTRY_AWAY_SECONDS
    return error, _LOOKED_FOR_SECONDS if error is ErrorCode.not_coordinator else 0.0


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
