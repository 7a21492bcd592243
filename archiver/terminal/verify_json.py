"""Shows a verification as JSON lines: each fault as it is found, a line for each topic, and one for the run."""

from __future__ import annotations

from collections.abc import Iterator

from archiver.terminal.json_lines import Line, error_json
from archiver.upkeep.verify.document import topic_json
from archiver.upkeep.verify.report import (
    FaultFound,
    FilesPlanned,
    TopicFailed,
    TopicVerified,
    VerifyEvent,
    VerifyFinished,
)
from schema_mapping.errors import ContextError


def verify_lines(event: VerifyEvent) -> Iterator[Line]:
    """Make the lines of an event. Progress is shown to people only."""
    match event:
        case FilesPlanned():
            yield (
                "planned",
                {
                    "topic": event.topic,
                    "files": event.files,
                    "size_bytes": event.size_bytes,
                    "resumed": event.resumed,
                },
            )
        case FaultFound():
            yield "fault", {"topic": event.topic, **event.fault.to_json()}
        case TopicVerified():
            yield "verified", topic_json(event.report)
        case TopicFailed():
            error = event.error
            told = error_json(error) if isinstance(error, ContextError) else {"message": str(error)}
            yield "failed", {"topic": event.topic, "error": told}
        case VerifyFinished():
            yield (
                "finished",
                {
                    "succeeded": event.report.succeeded,
                    "topics": len(event.report.topics),
                    "failed": len(event.report.failed),
                    "faults": sum(len(each.faults) for each in event.report.topics),
                    "records": sum(each.rows for each in event.report.topics),
                    "seconds": round(event.report.seconds, 3),
                    "report": list(event.paths),
                    "is_signed": event.is_signed,
                },
            )
        case _:
            return
