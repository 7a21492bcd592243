"""A command's success, and all its texts for operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from archiver.ingest.job import JobReport
from archiver.upkeep.compact.report import TopicCompaction
from archiver.upkeep.erase.report import EraseReport
from archiver.upkeep.orphans.report import TopicOrphans
from archiver.upkeep.rebuild.job import RebuiltTopic
from archiver.upkeep.reconcile import ReconciledTopic
from archiver.upkeep.refill.report import Fate, RefillReport
from archiver.upkeep.reprocess.report import ReprocessReport
from archiver.upkeep.retire.report import TopicRetired
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """`report` is None if the command raised."""

    succeeded: bool
    texts: tuple[str, ...]
    report: Any = None

    def __str__(self) -> str:
        return "succeeded" if self.succeeded else f"failed: {'; '.join(self.texts) or 'without a word'}"


def said_by(command: Callable[[], Any]) -> Said:
    """Raise errors that aren't the archiver's."""
    try:
        report = command()
    except ContextError as error:
        return Said(succeeded=False, texts=(_text(error),))
    return Said(succeeded=_succeeded(report), texts=tuple(_texts(report)), report=report)


def _succeeded(report: Any) -> bool:
    match report:
        case TopicOrphans() | ReconciledTopic():
            return report.error is None
        case _:
            return bool(getattr(report, "succeeded", True))


def _texts(report: Any) -> Iterator[str]:
    match report:
        case JobReport():
            topics = [error for topic in report.topics for error in (topic.error, *_errors(topic.partitions))]
            yield from (_text(error) for error in (report.error, *topics) if error)
        case TopicCompaction():
            yield from map(_text, (*([report.error] if report.error else ()), *report.failures.values()))
        case TopicRetired():
            yield from map(_text, (*([report.error] if report.error else ()), *report.failures.values()))
            yield from (f"partition {partition} is kept by {path}" for partition, path in report.kept.items())
        case EraseReport():
            yield from map(_text, (*report.failures.values(), *report.purged.failures.values()))
            if report.unfinished:
                yield f"{report.unfinished} stay open: {report.purged.left}, {report.purged.snapshots}, {report.copies}"
        case ReprocessReport():
            yield from map(_text, report.failures.values())
        case RefillReport():
            yield from (f"{entry.rows} rows are left: {entry.reason}" for entry in report.of(Fate.LEFT))
        case TopicOrphans() | ReconciledTopic():
            yield from (_text(error) for error in (report.error,) if error)
        case RebuiltTopic():
            yield from (f"{entry.path} is left: {entry.reason}" for entry in report.left)
        case _:
            return


def _errors(parts: Iterable[Any]) -> Iterator[BaseException | None]:
    return (part.error for part in parts)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
