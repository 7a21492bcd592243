"""Shows a reprocessing as JSON lines: one line, at its end."""

from __future__ import annotations

from collections.abc import Iterator

from archiver.terminal.json_lines import Line, error_json
from archiver.upkeep.reprocess.report import ReprocessEvent, ReprocessFinished


def reprocess_lines(event: ReprocessEvent) -> Iterator[Line]:
    """Make the line at the end. Events before it are progress, which only people are shown."""
    if not isinstance(event, ReprocessFinished):
        return
    report = event.report
    yield (
        "reprocessed",
        {
            "succeeded": report.succeeded,
            "topic": report.topic,
            "table": report.table,
            "dry_run": report.dry_run,
            "schema_version": report.schema_version,
            "commit_id": report.commit_id,
            "schema_registry_down": error_json(report.schema_registry_down) if report.schema_registry_down else None,
            "files_read": len(report.results) + len(report.failures),
            "files_rewritten": report.files,
            "errors": [
                {"part": part, "code": code, "found": found, "mended": report.mended[part, code]}
                for (part, code), found in sorted(report.found.items())
            ],
            "failures": [{"file": path, **error_json(error)} for path, error in sorted(report.failures.items())],
            "seconds": round(report.seconds, 3),
        },
    )
