"""Shows a search for orphans as JSON lines, at its end.

There is one line for each topic with every object, then one for the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from archiver.terminal.json_lines import Line, error_json
from archiver.upkeep.orphans.report import OrphanEvent, OrphansFinished, TopicOrphans


def orphans_lines(event: OrphanEvent) -> Iterator[Line]:
    """Make the lines at the end of the run. Events before it are progress, which only people are shown."""
    if not isinstance(event, OrphansFinished):
        return
    report = event.report
    for each in report.topics:
        yield "orphans", _topic(each)
    yield (
        "finished",
        {
            "succeeded": report.succeeded,
            "deletes": report.deletes,
            "older_than_seconds": report.older_than,
            "spool_folders": report.spool_folders,
            "seconds": round(report.seconds, 3),
        },
    )


def _topic(topic: TopicOrphans) -> dict[str, Any]:
    deleted = {each.path for each in topic.deleted}
    return {
        "topic": topic.topic,
        "table": topic.table,
        "objects": topic.listed,
        "orphans": [
            {
                "path": each.path,
                "kind": each.kind,
                "size_bytes": each.size,
                "modified": each.modified,
                "deleted": each.path in deleted,
            }
            for each in topic.orphans
        ],
        "needed_again": [each.path for each in topic.needed_again],
        "kept": {reason: number for reason, number in sorted(topic.kept.items()) if number},
        "failures": [{"file": path, **error_json(error)} for path, error in sorted(topic.failures.items())],
        "error": error_json(topic.error) if topic.error else None,
    }
