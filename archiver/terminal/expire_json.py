"""Shows a retirement as JSON lines: one for each topic at its end, then one for the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from archiver.terminal.json_lines import Line, error_json
from archiver.upkeep.removal.purge import Purged
from archiver.upkeep.retire.report import ExpireEvent, ExpireFinished, TopicRetired


def expire_lines(event: ExpireEvent) -> Iterator[Line]:
    """Make the lines at the end of the run. Events before it are progress, which only people are shown."""
    if not isinstance(event, ExpireFinished):
        return
    for each in event.report.topics:
        yield "retired", _topic(each)
    yield (
        "finished",
        {
            "succeeded": event.report.succeeded,
            "dry_run": event.report.dry_run,
            "seconds": round(event.report.seconds, 3),
        },
    )


def note_lines(event: ExpireEvent) -> Iterator[Line]:
    """Make a line for each topic that something went of. Retirements between other work are told by these alone."""
    for each in event.report.topics if isinstance(event, ExpireFinished) else ():
        if each.first_offsets or each.files or each.purged.deleted:
            yield "retired", _topic(each)


def purged_json(purged: Purged) -> dict[str, Any]:
    """Which files were deleted from the store, and what needs the others."""
    return {
        "deleted_files": purged.deleted,
        "deleted_bytes": purged.size_bytes,
        "left_files": list(purged.left),
        "held_files": purged.held,
        "kept_by_gc_enabled": purged.shared,
        "kept_by_owner": {
            "settings": dict(purged.snapshots.settings),
            "snapshots": [one.snapshot_id for one in purged.snapshots.owned],
        },
        "needed_by_snapshots": [one.snapshot_id for one in (*purged.snapshots.young, *purged.snapshots.others)],
        "needed_by_tags_and_branches": dict(purged.snapshots.named),
        "failures": [{"file": path, **error_json(error)} for path, error in sorted(purged.failures.items())],
    }


def _topic(topic: TopicRetired) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "table": topic.table,
        "has_limits": topic.has_limits,
        "first_offsets": {str(each): offset for each, offset in sorted(topic.first_offsets.items())},
        "rows": topic.rows,
        "files": topic.files,
        "size_bytes": topic.size_bytes,
        "rewritten_files": topic.rewritten,
        "commits": topic.commits,
        "stopped": topic.stopped,
        "needs_consent": list(topic.needs_consent),
        "held_partitions": {str(each): hold for each, hold in sorted(topic.held.items())},
        "kept_partitions": {str(each): path for each, path in sorted(topic.kept.items())},
        "store": purged_json(topic.purged),
        "journal": None if topic.journal is None else asdict(topic.journal),
        "failures": [{"file": path, **error_json(error)} for path, error in sorted(topic.failures.items())],
        "error": error_json(topic.error) if topic.error else None,
    }
