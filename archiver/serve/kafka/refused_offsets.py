"""Answers to OffsetFetch without offsets, such that no client takes them for none, and none waits for ever.

librdkafka gives up for good on COORDINATOR_NOT_AVAILABLE: it asks no more for these partitions, and its member neither
reads them nor lets go of them. COORDINATOR_LOAD_IN_PROGRESS it asks again for, unless its assignment has changed
meanwhile. Then it asks again for those partitions only that the answer names as asked for with an old epoch. Others
look at the error of the whole answer first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kio.schema.errors import ErrorCode

_WITH_GROUPS: Final = 8
_WITH_EPOCHS: Final = 9
_NAMED: Final = frozenset({ErrorCode.coordinator_load_in_progress, ErrorCode.stale_member_epoch})
_NONE: Final = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}


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
    for each in asked.topics or ():
        yield {
            "name": getattr(each, "name", None),
            "topic_id": getattr(each, "topic_id", None),
            "partitions": [{"partition_index": one, "error_code": error, **_NONE} for one in each.partition_indexes],
        }
