"""One erasure over several topics, with one question about all."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from archiver.config import Config
from archiver.engine.runner import Engine
from archiver.errors import ConfigError, ConsentMissing, UpkeepError
from archiver.observer import ignore
from archiver.records.where import Where
from archiver.upkeep.consent import GIVEN, Consent, RemovalQuestion
from archiver.upkeep.erase.consent import sample_of
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.erase.offset_list import OffsetList
from archiver.upkeep.erase.report import EraseEvent, EraseFinished, EraseObserver, EraseReport, RecordsFound
from archiver.upkeep.erase.topic import await_logs
from catalog.registry import Registry
from schema_mapping.errors import ContextError

_KEYS: Final = frozenset({"topic", "where", "offsets", "offsets_file"})
_SHAPE: Final = (
    "a plan has an [[erase]] section for each topic, with `topic`, and either `where`, or `offsets` and `offsets_file`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedErasure:
    topic: str
    condition: Where | OffsetList


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlan:
    """One erasure a topic; none if open ones are finished. `reason` is for the certificate."""

    erasures: tuple[PlannedErasure, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    plan: ErasurePlan
    reports: tuple[EraseReport, ...]
    errors: Mapping[str, ContextError] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        return not self.errors and all(report.succeeded for report in self.reports)


def read_plan(path: Path) -> ErasurePlan:
    """Paths are relative to the plan's folder. Raises ConfigError, naming the section."""
    try:
        document = tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"the plan can't be read: {error}", file=str(path)) from error
    sections = document.get("erase")
    unknown = sorted(document.keys() - {"erase", "reason"})
    if unknown or not isinstance(sections, list) or not sections:
        raise ConfigError(_SHAPE, file=str(path), **({"unknown": unknown} if unknown else {}))
    erasures = tuple(_planned(section, path, number) for number, section in enumerate(sections, start=1))
    topics = [erasure.topic for erasure in erasures]
    for topic in topics:
        if topics.count(topic) > 1:
            raise ConfigError(
                "the plan names a topic twice: join its conditions with `or`", file=str(path), topic=topic
            )
    return ErasurePlan(erasures=erasures, reason=str(document.get("reason", "")))


def _planned(section: Any, path: Path, number: int) -> PlannedErasure:
    context = {"file": str(path), "section": number}
    if not isinstance(section, dict) or not isinstance(section.get("topic"), str) or section.keys() - _KEYS:
        raise ConfigError(_SHAPE, **context)
    where, offsets, file = section.get("where"), section.get("offsets", []), section.get("offsets_file")
    if (where is None) == (not offsets and file is None) or not isinstance(offsets, list):
        raise ConfigError(_SHAPE, **context, topic=section["topic"])
    if where is not None:
        return PlannedErasure(topic=section["topic"], condition=Where.parse(str(where)))
    listed = OffsetList.parse(map(str, offsets))
    if file is not None:
        listed = listed.joined_with(OffsetList.of_file(path.parent / str(file), topic=section["topic"]))
    if not listed.spans:
        raise ConfigError("the list names no records: nothing is erased", **context, topic=section["topic"])
    return PlannedErasure(topic=section["topic"], condition=listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasePlan:
    """All topics are searched before any is changed. Consent is repeated if a topic's records differ."""

    config: Config
    plan: ErasurePlan
    observer: EraseObserver = ignore
    options: EraseOptions = field(default_factory=EraseOptions)
    consent: Consent = GIVEN
    engine: Engine | None = None

    def run(self) -> PlanReport:
        """Errors during an erasure are in the report.

        Raises before any change errors of a search (RecordsHeld, FilesShared), UpkeepError for unreadable files,
        LogNotWritten, and ConsentMissing.
        """
        if not self.options.dry_run:
            with Registry(self.config.registry.dsn) as registry:
                await_logs(self.config, [erasure.topic for erasure in self.plan.erasures], registry)
        previews = [self._search(erasure) for erasure in self.plan.erasures]
        if self.options.dry_run:
            return PlanReport(plan=self.plan, reports=tuple(previews))
        self._ask(previews)
        reports: list[EraseReport] = []
        errors: dict[str, ContextError] = {}
        for erasure, preview in zip(self.plan.erasures, previews, strict=True):
            try:
                reports.append(self._job(erasure, self.observer, replace(self.options, agreed=preview.spans)).run())
            except ContextError as error:
                errors[erasure.topic] = error
        return PlanReport(plan=self.plan, reports=tuple(reports), errors=errors)

    def _job(self, erasure: PlannedErasure, observer: EraseObserver, options: EraseOptions) -> Erase:
        return Erase(
            self.config,
            erasure.topic,
            erasure.condition,
            observer,
            options=options,
            engine=self.engine,
            consent=self.consent,
        )

    def _search(self, erasure: PlannedErasure) -> EraseReport:
        observer = self.observer if self.options.dry_run else _progress_only(self.observer)
        report = self._job(erasure, observer, replace(self.options, dry_run=True)).run()
        if report.failures and not self.options.dry_run:
            path, error = next(iter(report.failures.items()))
            raise UpkeepError(
                f"files of the topic can't be searched, so no topic of the plan is erased: {error.message}",
                topic=erasure.topic,
                file=path,
                files=len(report.failures),
            )
        return report

    def _ask(self, previews: list[EraseReport]) -> None:
        topics = [report for report in previews if report.spans]
        if not topics:
            return
        self.observer(RecordsFound(rows=sum(report.rows for report in topics)))
        counts = ", ".join(f"{report.offset_count:,} of {report.topic}" for report in topics)
        facts = chain.from_iterable(sample_of(self.config, report) for report in topics) if self.consent.asks else ()
        question = RemovalQuestion(
            verb="erase",
            things=f"{sum(report.offset_count for report in topics):,} records: {counts}",
            facts=tuple(facts),
        )
        if not self.consent(question):
            raise ConsentMissing("the question was not answered with yes: nothing was erased")


def _progress_only(observer: EraseObserver) -> Callable[[EraseEvent], None]:
    def show(event: EraseEvent) -> None:
        if not isinstance(event, EraseFinished):
            observer(event)

    return show
