"""Shows an erasure as JSON lines: one at its end. The condition is not among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from archiver.terminal.expire_json import purged_json
from archiver.terminal.json_lines import Line, error_json
from archiver.upkeep.erase.report import EraseEvent, EraseFinished, EraseReport

_RANGES: Final = 100


def erase_lines(event: EraseEvent) -> Iterator[Line]:
    """Make the line at the end of the run. Events before it are progress, which only people are shown."""
    if not isinstance(event, EraseFinished):
        return
    report = event.report
    yield (
        "erased",
        {
            "topic": report.topic,
            "table": report.table,
            "succeeded": report.succeeded,
            "dry_run": report.dry_run,
            "erasure": report.erasure,
            "condition_hash": report.condition_hash,
            "salt": report.salt,
            "rows": report.rows,
            "files": report.files,
            "offsets": {str(each): count for each, count in sorted(report.offsets.items())},
            "commits": report.commits,
            "store": purged_json(report.purged),
            "copies_deleted": report.copies_deleted,
            "copies_left": list(report.copies),
            "local_deleted": report.local_deleted,
            "local_left": list(report.local),
            "partition_columns": list(report.partition_columns),
            "rewriting_runs": list(report.rewriters),
            "finished": list(report.finished),
            "unfinished": list(report.unfinished),
            "unsearched": list(report.unsearched),
            "given_up": list(report.given_up),
            "unjudged": _unjudged(report),
            "doubtful": list(report.doubtful),
            "failures": [{"file": path, **error_json(error)} for path, error in sorted(report.failures.items())],
            "seconds": round(report.seconds, 3),
        },
    )


def _unjudged(report: EraseReport) -> dict[str, dict[str, object]]:
    """By partition, how many records couldn't be judged, and the first of their offsets as half-open ranges."""
    return {
        str(partition): {
            "records": count,
            "offsets": [[start, end] for one, start, end in report.unjudged if one == partition][:_RANGES],
        }
        for partition, count in report.unjudged_records.items()
    }
