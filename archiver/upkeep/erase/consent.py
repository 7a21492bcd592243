"""The question before an erasure: the records' number, offsets, and a sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from archiver.archive.topic_archive import open_archive
from archiver.config import Config
from archiver.errors import ConsentMissing
from archiver.upkeep.consent import Consent, RemovalQuestion
from archiver.upkeep.erase.report import EraseReport
from archiver.upkeep.erase.shown_records import shown_records
from archiver.upkeep.erase.spans import Span
from catalog.offset_range import OffsetRange
from catalog.ranges.spans import Cover

SAMPLE: Final = 3
_WIDTH: Final = 300


@dataclass(slots=True, kw_only=True)
class ErasureConsent:
    """Repeats the question if the records differ from `agreed`."""

    config: Config
    topic: str
    consent: Consent
    agreed: tuple[Span, ...] | None = None

    @property
    def asks(self) -> bool:
        return self.consent.asks

    def check(self, report: EraseReport, files: int) -> None:
        """Raise ConsentMissing if the answer isn't yes."""
        if not (report.spans or report.metadata) or report.spans == self.agreed:
            return
        if report.commits and self.agreed is not None:
            cover = Cover(OffsetRange.half_open(*span) for span in self.agreed)
            if not cover.beyond(OffsetRange.half_open(*span) for span in report.spans):
                return  # the rest of what was agreed on
        question = RemovalQuestion(
            topic=self.topic,
            verb="erase",
            records=report.offset_count,
            files=files,
            spans=report.spans,
            facts=tuple(sample_of(self.config, report)) if self.asks else (),
            is_repeated=self.agreed is not None,
        )
        if not self.consent(question):
            what = "nothing more is erased" if self.agreed is not None else "nothing was erased"
            raise ConsentMissing(f"the question was not answered with yes: {what}", topic=self.topic)
        self.agreed = report.spans


def sample_of(config: Config, report: EraseReport) -> Iterator[str]:
    for line in islice(shown_records(open_archive(config, report.topic, coerces=False), report.spans), SAMPLE):
        text = line.decode().rstrip()
        yield text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
    if report.metadata:
        yield f"entries of metadata that name such records, and are erased too: {len(report.metadata):,}"
    if unjudged := sum(report.unjudged_records.values()):
        yield f"{unjudged:,} more can't be judged by the condition's columns, and stay"
