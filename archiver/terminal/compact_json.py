"""Shows a compaction as JSON lines: one for each commit, one for each topic at the end, then one for the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from archiver.terminal.json_lines import Line, error_json
from archiver.upkeep.compact.report import CompactEvent, CompactFinished, GroupsCommitted, Merged, TopicCompaction


def compact_lines(event: CompactEvent) -> Iterator[Line]:
    """Make the lines of an event. Progress between commits is only for people."""
    yield from note_lines(event)
    if isinstance(event, CompactFinished):
        report = event.report
        for each in report.topics:
            yield "compacted", _topic(each)
        yield (
            "finished",
            {"succeeded": report.succeeded, "dry_run": report.dry_run, "seconds": round(report.seconds, 3)},
        )


def note_lines(event: CompactEvent) -> Iterator[Line]:
    """Make the line of a commit. Compactions between other work are told by these alone."""
    if isinstance(event, GroupsCommitted):
        yield "compacted_files", {"topic": event.topic, "commit_id": event.commit_id, **_merged(event.done)}


def _topic(topic: TopicCompaction) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "table": topic.table,
        "files": topic.files,
        "planned": {
            "groups": len(topic.planned),
            "files": topic.planned_files,
            "size_bytes": topic.planned_bytes,
            "expected_files": topic.expected_files,
            "reasons": dict(sorted(topic.reasons.items())),
            "moved_files": topic.planned_moves,
        },
        "partitioned_by": topic.partitioned_by,
        **_merged(topic.done),
        "commits": list(topic.commits),
        "made_in_vain": topic.again,
        "stopped": topic.stopped,
        "failures": [{"files": list(paths), **error_json(error)} for paths, error in sorted(topic.failures.items())],
        "error": error_json(topic.error) if topic.error else None,
    }


def _merged(done: Merged) -> dict[str, Any]:
    return {
        "files_before": done.files_before,
        "files_after": done.files_after,
        "bytes_before": done.bytes_before,
        "bytes_after": done.bytes_after,
        "rows": done.rows,
        "deleted_rows": done.removed,
        "moved_files": done.moved,
    }
