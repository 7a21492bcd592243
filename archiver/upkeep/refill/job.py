"""`archiver refill`: bring back lost records in one commit. Safe to repeat.

Adds only rows whose offsets no row has.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from archiver.config import Config
from archiver.engine.choice import EngineChoice
from archiver.engine.runner import Engine
from archiver.errors import ConsentMissing, SourceError, TopicBusy
from archiver.ingest.task.work import MODULES
from archiver.rewrite.rounds import in_rounds
from archiver.storage.formats import FORMATS
from archiver.storage.spool import clean_spool
from archiver.upkeep.archived_topic import find_archived
from archiver.upkeep.consent import GIVEN, Consent, RemovalQuestion
from archiver.upkeep.refill.from_kafka import RefetchedFiles
from archiver.upkeep.refill.mending import Mender, Mending
from archiver.upkeep.refill.originals import originals
from archiver.upkeep.refill.report import Fate, MendedHole, RefillReport, rows_of
from archiver.upkeep.refill.steps import Found, Made, RefillWork
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import DataFileInfo
from catalog.ranges.holes import Acceptance, Hole
from catalog.registry import Registry


class RefillJob:
    """Refill a topic's table. `engine` (default Spark) starts only to read Kafka.

    `accept_removed` records missing rows as erased on purpose, `accept_lost` the rest as lost.
    """

    def __init__(
        self,
        config: Config,
        topic: str,
        *,
        dry_run: bool = False,
        accept_removed: bool = False,
        accept_lost: bool = False,
        engine: Engine | None = None,
        consent: Consent = GIVEN,
    ) -> None:
        self._config = config
        self._name = topic
        self._dry_run = dry_run
        self._accept_removed = accept_removed
        self._accept_lost = accept_lost
        self._engine = engine
        self._consent = consent
        self._agreed: frozenset[MendedHole] = frozenset()

    def run(self) -> RefillReport:
        """Raises failures that stop the whole refill. Rows that stay missing are in the report."""
        engines = EngineChoice(self._config.spark, self._engine, preloaded=MODULES)
        engines.check()
        with ExitStack() as closing:
            registry = closing.enter_context(Registry(self._config.registry.dsn))
            catalog = closing.enter_context(TableCatalog(self._config.catalog))
            archived = find_archived(
                self._config, self._name, registry=registry, catalog=catalog, dry_run=self._dry_run
            )
            if not closing.enter_context(registry.lease(archived.topic)):
                raise TopicBusy("Another archiver is at work on the topic: stop it first", topic=self._name)
            work = RefillWork(
                topic=archived.topic,
                table=archived.table,
                config=self._config,
                registry=registry,
                catalog=catalog,
                engines=closing.enter_context(engines),
                formats=FORMATS,
            )
            if not self._dry_run:
                clean_spool(self._config.archive.spool)
                work.settle()
            return in_rounds(
                lambda: self._round(work),
                table=archived.topic.table,
                may_be="it can be refilled, so nothing was changed",
            )

    def _round(self, work: RefillWork) -> RefillReport | None:
        survey = work.look()
        made = self._made(work, survey)
        report = RefillReport(
            topic=self._name,
            table=work.topic.table,
            dry_run=self._dry_run,
            was_back=survey.is_back,
            mended=tuple(made.mended),
        )
        heals = report.succeeded
        changes = bool(made.mendings or made.accepted) or (survey.is_back and heals)
        if self._dry_run or not changes:
            return report
        self._ask(report)
        commit_id = work.commit(survey, made, heals=heals)
        if commit_id is None:
            return None
        return RefillReport(
            topic=report.topic,
            table=report.table,
            dry_run=False,
            was_back=report.was_back,
            mended=report.mended,
            commit_id=commit_id,
        )

    def _ask(self, report: RefillReport) -> None:
        going = report.of(Fate.ERASED, Fate.LOST)
        if not going or self._agreed == frozenset(going):
            return
        question = RemovalQuestion(
            topic=self._name,
            verb="note as erased" if self._accept_removed else "note as lost",
            records=rows_of(going),
            spans=tuple((mended.hole.partition, mended.hole.start_offset, mended.hole.end_offset) for mended in going),
            is_repeated=bool(self._agreed),
        )
        if not self._consent(question):
            raise ConsentMissing("the question was not answered with yes: nothing was changed", topic=self._name)
        self._agreed = frozenset(going)

    def _made(self, work: RefillWork, found: Found) -> Made:
        made = Made()
        for hole in found.unknown:
            if self._accept_removed or self._accept_lost:
                fate = Fate.ERASED if self._accept_removed else Fate.LOST
                made.mended.append(MendedHole(hole=hole, fate=fate, rows=hole.rows))
                continue
            reason = (
                "the registry has no range of these offsets: set the table forward again, or run `archiver registry"
                " rebuild` with the journal"
            )
            made.mended.append(MendedHole(hole=hole, fate=Fate.LEFT, rows=hole.rows, reason=reason))
        mender = work.mender(found)
        if self._accept_removed:
            for hole in found.holes:
                made.mended.append(MendedHole(hole=hole, fate=Fate.ERASED, rows=hole.rows))
                made.accepted.append(acceptance_of(found, hole, erased=hole.rows, offsets=mender.absent(hole)))
            return made
        elsewhere = self._from_existing(work, found, mender, made)
        if elsewhere:
            self._from_kafka(work, found, elsewhere, mender, made)
        return made

    def _from_existing(self, work: RefillWork, found: Found, mender: Mender, made: Made) -> list[Hole]:
        kept = [replace(found.ranges[range_id], files=tuple(files)) for range_id, files in found.kept.items()]
        existing = originals(kept, work.objects(found), FORMATS, found.table.properties)
        elsewhere: list[Hole] = []
        for hole in found.holes:
            files = existing.get(hole.range_id, ())
            if self._dry_run and files:
                rows = mender.found_in_files(hole, files, found.erased_in(hole))
                if rows:
                    reason = "without the records of this range that were erased" if found.has_erased(hole) else ""
                    made.mended.append(MendedHole(hole=hole, fate=Fate.FROM_FILE, rows=rows, reason=reason))
                if rows < hole.rows:
                    self._elsewhere(replace(hole, rows=hole.rows - rows), mender, found, made, elsewhere)
            elif not files or not self._from_files(made, mender, hole, files, found):
                self._elsewhere(hole, mender, found, made, elsewhere)
        return elsewhere

    def _elsewhere(self, hole: Hole, mender: Mender, found: Found, made: Made, elsewhere: list[Hole]) -> None:
        """Fetch a hole from Kafka, unless its records were erased: Kafka may still have them."""
        if not found.has_erased(hole):
            elsewhere.append(hole)
        elif self._accept_lost:
            made.mended.append(MendedHole(hole=hole, fate=Fate.LOST, rows=hole.rows))
            made.accepted.append(acceptance_of(found, hole, lost=hole.rows, offsets=mender.absent(hole)))
        else:
            reason = (
                "records of this range were erased, and Kafka may still have them, so it isn't asked."
                " Look for the range's files in a backup. Only if there is none, --accept-lost notes the rows as lost"
            )
            made.mended.append(MendedHole(hole=hole, fate=Fate.LEFT, rows=hole.rows, reason=reason))

    def _from_files(self, made: Made, mender: Mender, hole: Hole, files: Sequence[DataFileInfo], found: Found) -> bool:
        mending = mender.from_files(hole, files, found.erased_in(hole))
        is_last = bool(mending.reason) or mending.rows == hole.rows
        if is_last or mending.rows:
            self._take(made, mender, mending, Fate.FROM_FILE, found, is_last=is_last)
        return is_last or bool(mending.rows)

    def _from_kafka(self, work: RefillWork, found: Found, holes: Sequence[Hole], mender: Mender, made: Made) -> None:
        if self._dry_run:
            reason = "its file is gone: Kafka is asked for it, if the log still has it"
            made.mended += [
                MendedHole(hole=hole, fate=Fate.FROM_KAFKA, rows=hole.rows, reason=reason) for hole in holes
            ]
            return
        try:
            log = work.fetch(found.missing(holes))
        except SourceError as error:  # files that exist still come back
            made.mended += [MendedHole(hole=hole, fate=Fate.LEFT, rows=hole.rows, reason=str(error)) for hole in holes]
            return
        made.change = log.change if log else None
        for hole in holes:
            fetched = log.fetched[hole.range_id] if log else RefetchedFiles()
            if fetched.error is not None:
                reason = str(fetched.error)
                made.mended.append(MendedHole(hole=hole, fate=Fate.LEFT, rows=hole.rows, reason=reason))
                continue
            mending = mender.from_log(hole, fetched.ranges, takes_part=self._accept_lost)
            self._take(made, mender, mending, Fate.FROM_KAFKA, found)

    def _take(
        self, made: Made, mender: Mender, mending: Mending, fate: Fate, found: Found, *, is_last: bool = True
    ) -> None:
        if mending.rows:
            made.mendings.append(mending)
            made.mended.append(MendedHole(hole=mending.hole, fate=fate, rows=mending.rows, reason=mending.doubt))
        left = mending.hole.rows - mending.rows
        if not left:
            return
        if not is_last:
            reason = "only some of the range's files exist still; run it again, which asks Kafka for the rest"
            made.mended.append(MendedHole(hole=mending.hole, fate=Fate.LEFT, rows=left, reason=reason))
            return
        if self._accept_lost:
            made.mended.append(MendedHole(hole=mending.hole, fate=Fate.LOST, rows=left))
            offsets = mender.absent(mending.hole, mending.restored)
            made.accepted.append(acceptance_of(found, mending.hole, lost=left, offsets=offsets))
            return
        reason = mending.reason or "its file is gone, and the log doesn't have these records any more"
        made.mended.append(
            MendedHole(
                hole=mending.hole,
                fate=Fate.LEFT,
                rows=left,
                reason=f"{reason}. Look for the range's files in a backup. Only if there is none, --accept-lost notes"
                " the rows as lost",
            )
        )


def acceptance_of(
    found: Found, hole: Hole, *, erased: int = 0, lost: int = 0, offsets: tuple[tuple[int, int], ...] | None = None
) -> Acceptance:
    range_ = found.expected[hole.range_id]
    return Acceptance(
        range_id=hole.range_id,
        left=range_.rows - erased - lost,
        erased=erased,
        lost=lost,
        paths=tuple(file.path for file in range_.files),
        partition=range_.partition,
        start_offset=range_.start_offset,
        offsets=offsets,
    )
