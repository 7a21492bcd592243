"""`archiver erase`: take records out of an archive for good.

Files with such records are written anew without them. Then old snapshots are expired at once, and every object that had
the records is deleted. What can't be deleted yet is named, and `--finish` goes on with it. It may run beside an
archiver, and may be killed at any moment and run again.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from archiver.archive.plan_cache import PlanCache
from archiver.archive.table_files import ManifestReader, TableFile
from archiver.audit.acts import Noted
from archiver.audit.trail import AuditTrail
from archiver.commit.find_holes import search
from archiver.commit.known_rows import named
from archiver.config import Config
from archiver.engine.runner import Engine
from archiver.engine.session import check_spark
from archiver.engine.threads import ThreadEngine
from archiver.errors import TopicBusy, UpkeepError
from archiver.fault_points import RemovalPoint, pass_point
from archiver.observer import all_of, ignore
from archiver.replay.where import Where
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.journal import Journal
from archiver.storage.spool import clean_spool
from archiver.upkeep.archived_topic import find_archived
from archiver.upkeep.erase.candidates import may_match, retired_components, unknown_rows
from archiver.upkeep.erase.copies import Spans, remove_copies
from archiver.upkeep.erase.local_copies import forget_plans, partition_columns, remove_local_copies
from archiver.upkeep.erase.report import (
    EraseFailed,
    EraseFinished,
    EraseObserver,
    EraseReport,
    FileSearched,
    FilesSearched,
)
from archiver.upkeep.erase.spans import are_known, counted, left_of
from archiver.upkeep.erase.standing import Standing, is_searched
from archiver.upkeep.file_rewrite import put_in_place, settle_rewrites
from archiver.upkeep.known_holds import holds_in_force
from archiver.upkeep.reconcile import reconcile
from archiver.upkeep.removal.clock import confirmed_time
from archiver.upkeep.removal.components import Component, components
from archiver.upkeep.removal.conditions import AtOffsets, Condition, Matching
from archiver.upkeep.removal.purge import RemovedFiles, purge
from archiver.upkeep.removal.rewriting import RemovalResult, RemovalTask, remove_rows
from archiver.upkeep.removal.table_columns import table_columns
from archiver.upkeep.removal.target import places_of, removal_target
from archiver.upkeep.upload_claims import UploadClaims
from catalog.errors import CatalogUnreachable
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.rewrite_commit import Rewritten
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow, new_id
from catalog.ranges.legal_holds import of_config
from catalog.ranges.rewrite import Rewrite
from catalog.registry import Registry
from catalog.registry.erased_offsets import CONDITION, SEARCHED_MS, UNJUDGED
from catalog.registry.holds import refuse_held

REASON: Final = "erase"
ROUNDS: Final = 5
BATCH: Final = 200
"""How many components one commit writes anew."""
HERE_BYTES: Final = 1 << 30
STAGED_TRIES: Final = 30
STAGED_PAUSE: Final = 2.0
"""How often and how far apart it is looked whether an archiver has committed what was staged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseOptions:
    """`grace` is for how many seconds readers of older snapshots keep their files. A dry run changes nothing."""

    grace: float = 0.0
    dry_run: bool = False


class Erase:
    """Erases the records of a topic that a condition holds for, as far as they are archived or staged by now.

    Without a condition it goes on with erasures that aren't finished.
    """

    def __init__(
        self,
        config: Config,
        topic: str,
        where: Where | None,
        observer: EraseObserver = ignore,
        *,
        options: EraseOptions | None = None,
        engine: Engine | None = None,
        formats: SegmentFormats = FORMATS,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._config = config
        self._name = topic
        self._where = where
        self._observer = all_of(observer)
        self._options = options or EraseOptions()
        self._engine = engine
        self._formats = formats
        self._clock = clock

    def run(self) -> EraseReport:
        """Erase. RecordsHeld where a legal hold is on such records: nothing is changed then.

        ConfigError where this machine's clock isn't that of Postgres.

        Raises what stops the whole erasure. Files that fail are in the report, and the others go on.
        """
        started = time.monotonic()
        with ExitStack() as closing:
            registry = closing.enter_context(Registry(self._config.registry.dsn))
            catalog = closing.enter_context(TableCatalog(self._config.catalog))
            archived = find_archived(self._config, self._name, registry=registry, catalog=catalog)
            now = self._clock() if self._clock else confirmed_time(registry)
            report = EraseReport(topic=self._name, table=archived.topic.table, dry_run=self._options.dry_run)
            work = TopicErasure(
                config=self._config,
                topic=archived.topic,
                table=archived.table,
                registry=registry,
                catalog=catalog,
                manifests=ManifestReader(cache=PlanCache.below(self._config.archive.spool)),
                engine=lambda size_bytes: self._runner(size_bytes, closing),
                observer=self._observer,
                formats=self._formats,
            )
            if self._where is not None:
                self._erase(work, self._where, report)
            elif not self._options.dry_run:
                work.settle({})
            if not self._options.dry_run:
                work.finish(report, grace=self._options.grace, now=now)
        report.seconds = time.monotonic() - started
        self._observer(EraseFinished(report=report))
        return report

    def _erase(self, work: TopicErasure, where: Where, report: EraseReport) -> None:
        columns = table_columns(where, work.table.schema, work.registry.ledger.load(work.topic))
        ends = {each: reached.next_offset for each, reached in work.registry.files.accepted_ends(work.topic).items()}
        if not self._options.dry_run:
            work.settle(ends)
        within = {each: end for each, end in ends.items() if where.bounds(each) is not None}
        condition = Matching(where, within, columns)
        salt = secrets.token_hex(16)
        told = hmac.new(bytes.fromhex(salt), where.text.encode(), hashlib.sha256).hexdigest()
        erasure = new_id()
        value = {"id": erasure, CONDITION: told, "grace_seconds": int(self._options.grace)}
        is_kept = work.erase(condition, report, erasure=erasure, value=value, dry_run=self._options.dry_run)
        if report.rows or report.commits or is_kept:
            report.erasure, report.condition_hash, report.salt = erasure, told, salt

    def _runner(self, size_bytes: int, closing: ExitStack) -> Engine:
        if self._engine is None and size_bytes > HERE_BYTES:
            from archiver.engine.spark import SparkEngine

            check_spark(self._config.spark)
            self._engine = closing.enter_context(SparkEngine.start(self._config.spark))
        return self._engine or ThreadEngine()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicErasure:
    """The erasures of one topic, with all that they need."""

    config: Config
    topic: TopicRow
    table: ArchiveTable
    registry: Registry
    catalog: TableCatalog
    manifests: ManifestReader
    engine: Callable[[int], Engine]
    observer: EraseObserver = ignore
    formats: SegmentFormats = FORMATS

    def settle(self, ends: Mapping[int, int]) -> None:
        """Have everything staged below these offsets committed, by the archiver at work or by us.

        TopicBusy (retryable) where that takes too long.
        """
        for attempt in range(STAGED_TRIES):
            pending = self.registry.files.pending(self.topic)
            waiting = [one for one in pending if one.start_offset < ends.get(one.partition, 0)]
            if not waiting:
                journal = Journal.of(self.config).of_table(self.table)
                settle_rewrites(self.table, self.registry, self.catalog, self.manifests, journal)
                self._trail.note_hold(is_held=self.config.topic(self.topic.topic).hold)
                return
            if attempt:
                time.sleep(STAGED_PAUSE)
            reconcile(self.config, (self.topic.topic,))
        raise TopicBusy(
            "files with records that may have to go wait for their commit: run it again when the archiver has committed"
            " them, or after `archiver reconcile`",
            topic=self.topic.topic,
            files=[file.path for one in waiting for file in one.files][:5],
        )

    def erase(
        self,
        condition: Condition,
        report: EraseReport,
        *,
        erasure: str,
        value: Mapping[str, object],
        dry_run: bool = False,
    ) -> bool:
        """Write files with such rows anew, and note their offsets as erased. `value` is kept until it is finished.

        Returns whether the search ended, and the registry has it so.
        """
        with UploadClaims.of_run(self.registry, self.topic, is_noted=not dry_run) as claims:
            for _ in range(ROUNDS):
                found, known = self._search(condition, report, erasure, claims, dry_run=dry_run)
                spans = [each for result in found for each in result.removed]
                if spans:
                    report.offsets = counted(spans)
                journal = Journal.of(self.config).of_table(self.table)
                holds = holds_in_force(self.topic, journal, self.registry, recalls=not dry_run)
                by_config = of_config(hold=self.config.topic(self.topic.topic).hold)
                refuse_held(self.topic, (*by_config, *holds), spans, command=REASON)
                if dry_run:
                    report.rows = sum(each.rows for each in found)
                    report.files = sum(1 for each in found if each.rows)
                    return False
                unjudged = sum(report.unjudged_records.values()) if isinstance(condition, Matching) else 0
                told = {**value, UNJUDGED: unjudged} if unjudged else value
                if found:
                    self.registry.erasures.begin(self.topic, erasure, dict(told))
                if not found or self._commit(found, known, report):
                    # Inside of the run: who sees it neither alive nor searched may take it for dead.
                    return isinstance(condition, Matching) and not report.failures and self._ended(erasure, told)
        raise CatalogUnreachable(
            "Others rewrite the table's files faster than records can be erased; run it again when they are done",
            table=self.topic.table,
        )

    def _ended(self, erasure: str, value: Mapping[str, object]) -> bool:
        # Whoever reads files from here on has none of these records.
        return self.registry.erasures.end_search(self.topic, erasure, value, self._now_ms())

    def finish(self, report: EraseReport, *, grace: float, now: float) -> None:
        """Delete every object that has erased records, as far as nothing needs it; note what is finished.

        An erasure of which not all records were found is never noted as finished.
        """
        waiting = self.registry.erasures.unfinished(self.topic)
        if not waiting:
            return
        clean_spool(self.config.archive.spool)
        commits = len(report.commits)
        if waiting.keys() - {report.erasure}:  # others may have brought some back since
            erased = self.registry.erasures.offsets(self.topic)
            again = AtOffsets({each: tuple(those) for each, those in erased.items()})
            first = min(waiting)
            self.erase(again, report, erasure=first, value=waiting[first])
        report.rewriters = self._rewriters(waiting, is_anew=len(report.commits) > commits)
        standing = Standing.of(waiting)
        report.unsearched = standing.unsearched
        # Another run may have ended its search since, with offsets that weren't known: it finishes that one itself.
        later = {each for each, value in self.registry.erasures.unfinished(self.topic).items() if is_searched(value)}
        given_up = tuple(each for each in standing.superseded if each not in later)
        erased = self.registry.erasures.offsets(self.topic)
        is_held = self.config.topic(self.topic.topic).hold
        report.purged = purge(
            self.table,
            registry=self.registry,
            catalog=self.catalog,
            trail=self._trail,
            grace_seconds=grace,
            with_others=True,
            holds_all=is_held,
            of_erasures=True,
        )
        checks = RemovedFiles(self.table, self.catalog)
        table = checks.look()
        copies = remove_copies(
            self.table,
            erased,
            registry=self.registry,
            trail=self._trail,
            checks=checks,
            formats=self.formats,
            older_than_ms=int((now - self.config.archive.orphan_grace) * 1_000),
        )
        report.copies, report.copies_deleted = copies.left, copies.deleted
        self._clean_machine(report, table, erased)
        if report.purged.left or report.failures or copies.left or report.local or report.rewriters:
            report.unfinished = tuple(waiting)
            return
        self._note({each: waiting[each] for each in standing.searched}, report)
        self._note_given_up({each: waiting[each] for each in given_up})
        pass_point(RemovalPoint.ERASURE_NOTED)
        self.registry.erasures.finish(self.topic, (*standing.searched, *given_up))
        report.finished, report.given_up = standing.searched, given_up
        report.doubtful = tuple(each for each in standing.searched if waiting[each].get(UNJUDGED))
        report.unfinished = tuple(each for each in waiting if each not in {*standing.searched, *given_up})

    def _clean_machine(self, report: EraseReport, table: ArchiveTable, erased: Spans) -> None:
        spool = self.config.archive.spool
        archived = {each: reached.next_offset for each, reached in table.offsets.items()}
        local = remove_local_copies(spool, table, erased, archived=archived, formats=self.formats)
        report.local, report.local_deleted = local.left, local.deleted
        report.partition_columns = partition_columns(table)
        if report.partition_columns:
            forget_plans(spool)

    @property
    def _trail(self) -> AuditTrail:
        return AuditTrail.of(self.topic, Journal.of(self.config).of_table(self.table), self.registry)

    def _now_ms(self) -> int:
        return int(self.registry.retention.now() * 1_000)

    def _rewriters(self, waiting: Mapping[str, Mapping[str, object]], *, is_anew: bool) -> tuple[str, ...]:
        """The runs that may have read erased records before, and still write: they are alive, or died lately.

        Ask before uploads are listed: then the list has all that other runs have uploaded. `is_anew` says that the
        table had some again just before. A run that still searches is among them.
        """
        now_ms = self._now_ms()
        fresh = [each for each, value in waiting.items() if is_anew or SEARCHED_MS not in value]
        self.registry.erasures.note_searched(self.topic, fresh, now_ms)
        since = max(now_ms if each in fresh else int(str(value[SEARCHED_MS])) for each, value in waiting.items())
        grace = self.config.archive.orphan_grace
        runs = self.registry.claims.runs(self.topic)
        return tuple(each.id for each in runs if each.begun_ms <= since and each.silent_seconds < grace)

    def _note(self, waiting: Mapping[str, Mapping[str, object]], report: EraseReport) -> None:
        for erasure, value in waiting.items():
            told = {name: each for name, each in value.items() if name != SEARCHED_MS}
            details = {**told, "deleted_files": report.purged.deleted, "deleted_copies": report.copies_deleted}
            self._trail.record(Noted(kind="erase", id=f"erase-{erasure}", details=details))

    def _note_given_up(self, given_up: Mapping[str, Mapping[str, object]]) -> None:
        for erasure, value in given_up.items():
            self._trail.record(Noted(kind="abandon", id=f"abandon-{erasure}", details=value))

    def _search(
        self, condition: Condition, report: EraseReport, erasure: str, claims: UploadClaims, *, dry_run: bool
    ) -> tuple[list[RemovalResult], dict[str, TableFile]]:
        ranges = self.registry.retention.ranges(self.topic)  # before the table: so it has them
        expected = self.registry.rows.expected_ranges(self.topic)
        table = self.catalog.reload(self.table)
        holes = search(table, expected, formats=self.formats)
        if holes:
            raise UpkeepError(
                "the table lacks archived rows, and those to be erased may be among them: run `archiver refill TOPIC`"
                " first, which brings them back, or has them accepted as gone (--accept-removed)",
                topic=self.topic.topic,
                missing=named(holes),
            )
        files = tuple(self.manifests.files(table.iceberg))
        found = components(ranges, files)
        for file in found.strangers:
            self._fail(report, file.path, unknown_rows(file))
        retired = retired_components(self.registry.retention.retired_files(self.topic), files)
        those = [each for each in (*found.all, *retired) if may_match(each, condition)]
        self.observer(FilesSearched(files=sum(len(each.files) for each in those), size_bytes=sum(map(_size, those))))
        erased = self.registry.erasures.offsets(self.topic)
        target = removal_target(self.config, table, self.registry, self.formats)
        places = {} if dry_run else places_of(table, [file for each in those for file in each.files])
        tasks = [
            RemovalTask(
                target=target,
                component=each,
                condition=condition,
                fate="erased",
                why=f"erasure {erasure}",
                places={file.path: places[file.path] for file in each.files if file.path in places},
                dry_run=dry_run,
            )
            for each in those
        ]
        results: list[RemovalResult] = []
        unjudged: list[tuple[int, int, int]] = []
        for outcome in self.engine(sum(map(_size, those))).run_tasks(tasks, remove_rows) if tasks else ():
            component = those[outcome.index]
            if outcome.result is None:
                assert outcome.error is not None
                path = next((file.path for file in component.files), component.recorded[0])
                report.failures[path] = outcome.error
                self.observer(EraseFailed(path=path, error=outcome.error))
                continue
            result = outcome.result
            claims.keep(*(result.group.new_paths if result.group else ()))
            unjudged += result.unjudged
            self.observer(FileSearched(files=len(component.files), rows=result.rows))
            # What only the store has stays there until nothing refers to it: it is erased once.
            if result.removed and (component.files or not are_known(result.removed, erased)):
                results.append(result)
        if isinstance(condition, Matching):
            report.unjudged = left_of(unjudged, [each for result in results for each in result.removed], erased)
        return results, {file.path: file for file in files}

    def _commit(self, found: Sequence[RemovalResult], known: Mapping[str, TableFile], report: EraseReport) -> bool:
        """Commit batch by batch. False where others changed a file meanwhile."""
        for start in range(0, len(found), BATCH):
            batch = found[start : start + BATCH]
            table = self.catalog.reload(self.table)
            rewrite = Rewrite(
                commit_id=new_id(),
                reason=REASON,
                schema_version=table.ledger_version,
                groups=tuple(each.group for each in batch if each.group),
                erased=tuple(span for each in batch for span in each.removed),
            )
            done = put_in_place(
                table,
                rewrite,
                known,
                change=None,
                registry=self.registry,
                catalog=self.catalog,
                manifests=self.manifests,
                journal=Journal.of(self.config).of_table(table),
            )
            if not isinstance(done, Rewritten):
                return False
            report.commits.append(done.commit_id)
            report.rows += sum(each.rows for each in batch)
            report.files += sum(len(each.group.paths) for each in batch if each.group)
        return True

    def _fail(self, report: EraseReport, path: str, error: UpkeepError) -> None:
        report.failures[path] = error
        self.observer(EraseFailed(path=path, error=error))


def _size(each: Component) -> int:
    return each.size_bytes
