"""The `DataLoss` errors of planning and fetching, with cause and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from archiver.errors import CorruptBatch, DataLoss


def check_topic_id(topic: str, *, archived: UUID | None, found: UUID | None) -> None:
    """Raise DataLoss if the topic was recreated: its offsets now belong to other records."""
    if archived is not None and found is not None and archived != found:
        raise DataLoss(
            "The topic was deleted and created again since it was archived; archive the new one to a table of its own",
            topic=topic,
            archived_topic_id=str(archived),
            topic_id=str(found),
        )


def deleted(topic: str, partition: int, *, offset: int, log_start: int, missing: Sequence[str] = ()) -> DataLoss:
    """`missing` are staged files that the store lost."""
    lost = f"[{offset}, {log_start})"
    if missing:
        return DataLoss(
            "Files staged with these records are gone from the object store, and the log no longer has the records. "
            "Put the files back, if a backup or the store's versions have them, and run again. Only if none has,"
            " --accept-gap records the loss and goes on",
            topic=topic,
            partition=partition,
            lost=lost,
            files=list(missing),
        )
    return DataLoss(
        "Records were deleted from the log before they were archived: retention is shorter than the archiver's lag. "
        "Only if no other cluster or backup has them, --accept-gap records the loss and goes on",
        topic=topic,
        partition=partition,
        lost=lost,
    )


def corrupt(error: CorruptBatch, *, next_offset: int) -> CorruptBatch:
    """Records before `next_offset` are read."""
    return CorruptBatch(
        f"{error.message}. It is the same in three fetches, one of them on a new connection."
        " docs/missing-records.md says how to look for another copy, and how to continue after it",
        **error.context,
        next_offset=next_offset,
    )


def unreadable(reason: str, topic: str, partition: int, *, offset: int) -> CorruptBatch:
    return CorruptBatch(
        f"The leader has the next offset and can't give it: {reason}, in three fetches, one of them on a new"
        " connection. docs/missing-records.md says how to look for another copy, and how to continue after it",
        topic=topic,
        partition=partition,
        offset=offset,
    )


def diverged(
    topic: str, partition: int, *, leader_epoch: int, epoch_end: int, offset: int, differs: str | None
) -> DataLoss:
    """`differs` is a comparison's result."""
    return DataLoss(
        "The log was cut back and written anew after it was archived (an unclean leader election, or a topic that was"
        " deleted and created again): archive and topic don't hold the same records any more, and the partition stays"
        " stopped. To go on, archive the topic to "
        "another table, with a registry of its own",
        topic=topic,
        partition=partition,
        leader_epoch=leader_epoch,
        diverging=f"[{epoch_end}, {offset})",
        **({"differs": differs} if differs else {}),
    )


def too_short(topic: str, partition: int, *, log_end: int, offset: int) -> DataLoss:
    return DataLoss(
        "The log ends before the offset that comes next: it was cut back, or these are another cluster's brokers. "
        "Check bootstrap.servers in [kafka]; if the log was cut back, the partition stays stopped",
        topic=topic,
        partition=partition,
        log_end=log_end,
        next_offset=offset,
    )
