"""Answers to OffsetFetch without offsets, which no client takes for "no offsets", and on which none waits without end.

On errors that make it look for another coordinator, librdkafka gives up for good: it repeats the request only for
partitions answered with an old epoch, and neither reads the remaining ones nor releases them. On
COORDINATOR_LOAD_IN_PROGRESS it repeats it at the same node, unless its assignment has changed. Other clients look at
the error of the whole answer first.

So a node without the registry answers NOT_COORDINATOR if there are other nodes, which may have it, and
COORDINATOR_LOAD_IN_PROGRESS if it is alone. With versions 1 and 7, which librdkafka before 2.4 sends, neither error
helps: that client stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from kio.schema.errors import ErrorCode

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
    version: int, asked: Any, error: ErrorCode, *, has_others: bool, ending: asyncio.Future[None]
) -> dict[str, Any]:
    """The answer of a node that doesn't coordinate the group, or can't say. It comes late: see `refused_here`."""
    error, seconds = refused_here(version, error, has_others=has_others)
    await late(seconds, ending)
    return no_offsets(version, asked, error)


def refused_here(version: int, error: ErrorCode, *, has_others: bool) -> tuple[ErrorCode, float]:
    """The error that such a node gives for a group, and the seconds to wait before it.

    librdkafka repeats at once, also while it looks for the coordinator, and reports each error to its user.
    """
    if error is ErrorCode.coordinator_not_available and has_others and version not in _STAYING:
        return ErrorCode.not_coordinator, _REGISTRY_AWAY_SECONDS
    return error, _LOOKED_FOR_SECONDS if error is ErrorCode.not_coordinator else 0.0


async def late(seconds: float, ending: asyncio.Future[None]) -> None:
    """Wait for this many seconds, or until the server ends."""
    if seconds:
        await asyncio.wait({ending}, timeout=seconds)


def no_offsets(version: int, asked: Any, error: ErrorCode) -> dict[str, Any]:
    """The answer about a group. `asked` has the topics: the request itself, or one of its groups."""
    if error is ErrorCode.coordinator_not_available:
        error = ErrorCode.coordinator_load_in_progress
    if version < _WITH_GROUPS:
        return {"error_code": error, "topics": list(_topics(asked, error))}
    is_named = version >= _WITH_EPOCHS and error in _NAMED
    topics = list(_topics(asked, ErrorCode.stale_member_epoch)) if is_named else []
    return {"group_id": asked.group_id, "error_code": error, "topics": topics}


def _topics(asked: Any, error: ErrorCode) -> Iterator[dict[str, Any]]:
    for topic in asked.topics or ():
        yield {
            "name": getattr(topic, "name", None),
            "topic_id": getattr(topic, "topic_id", None),
            "partitions": [
                {"partition_index": partition, "error_code": error, **_NONE} for partition in topic.partition_indexes
            ],
        }
