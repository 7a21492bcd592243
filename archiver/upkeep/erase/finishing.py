"""The end of erasures: delete objects and copies with erased records, and record the outcome.

Objects that can't be deleted yet keep their erasure open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from archiver.audit.acts import Noted
from archiver.fault_points import RemovalPoint, pass_point
from archiver.index.claim import CLAIM
from archiver.storage.spool import clean_spool
from archiver.upkeep.erase.copies import Spans, remove_copies
from archiver.upkeep.erase.index_terms import erase_terms
from archiver.upkeep.erase.local_copies import forget_plans, partition_columns, remove_local_copies
from archiver.upkeep.erase.metadata import erase_metadata
from archiver.upkeep.erase.removing import erase_rows
from archiver.upkeep.erase.report import EraseReport
from archiver.upkeep.erase.topic import TopicErasure, unwritten_log
from archiver.upkeep.removal.conditions import AtOffsets
from archiver.upkeep.removal.purge import ExpiresOwned, PurgeTerms, RemovedFiles, never_owned, purge
from archiver.upkeep.removal.snapshots import HoldingSnapshots
from catalog.iceberg.archive_table import ArchiveTable
from catalog.registry.erased_offsets import CONDITION, SEARCHED_MS, SUPERSEDED_BY, UNJUDGED, WAITS_FOR


def finish(
    work: TopicErasure,
    report: EraseReport,
    *,
    grace: float,
    now: float,
    searched: Spans | None = None,
    expires_owned: ExpiresOwned = never_owned,
) -> None:
    """Delete unneeded objects with erased records, and record finished erasures.

    An erasure without a complete search is never recorded as finished. `searched` are the offsets of this run, empty
    for a condition, None if it only continues.
    """
    waiting = work.registry.erasures.unfinished(work.topic)
    # Rows of files that weren't searched may stay. The offsets that left the table are known as erased.
    named = {} if searched is None or report.failures else searched
    if not waiting:
        report.failures.update(erase_metadata(work, searched or {}))
        if searched is not None:
            _erase_terms(work, report, named, begun_by_ms=work.now_ms())
        return
    report.conditions = {erasure: str(value.get(CONDITION, "")) for erasure, value in waiting.items()}
    clean_spool(work.config.archive.spool)
    commits = len(report.commits)
    if waiting.keys() - {report.erasure}:  # other runs may have restored some since
        erased = work.registry.erasures.offsets(work.topic)
        again = AtOffsets({key: tuple(erased_spans) for key, erased_spans in erased.items()})
        first = min(waiting)
        own = report.offsets, report.spans, report.rows
        erase_rows(work, again, report, erasure=first, value=waiting[first])
        report.offsets, report.spans, report.rows = own  # rows of other erasures aren't this one's
    report.failures.update(erase_metadata(work, searched or {}))
    since = _searched_ms(work, waiting, is_anew=len(report.commits) > commits)
    report.rewriters = _rewriters(work, since)
    standing = Standing.of(waiting)
    report.unsearched = standing.unsearched
    # Another run may have ended its search since, with offsets that weren't known: it finishes that one itself.
    later = {key for key, value in work.registry.erasures.unfinished(work.topic).items() if is_searched(value)}
    given_up = tuple(key for key in standing.superseded if key not in later)
    erased = work.registry.erasures.offsets(work.topic)
    report.erased = tuple((partition, *span) for partition, spans in sorted(erased.items()) for span in spans)
    report.failures.update(unwritten_log(work))
    is_held = work.config.topic(work.topic.topic).hold
    report.purged = purge(
        work.table,
        work,
        PurgeTerms(
            grace_seconds=grace, with_others=True, holds_all=is_held, of_erasures=True, expires_owned=expires_owned
        ),
    )
    work.registry.erasures.note_waiting(work.topic, waiting, _waits_for(report.purged.snapshots))
    checks = RemovedFiles(work.table, work.catalog)
    table = checks.look()
    copies = remove_copies(
        work.table,
        erased,
        registry=work.registry,
        trail=work.trail(work.topic),
        checks=checks,
        formats=work.formats,
        older_than_ms=int((now - work.config.archive.orphan_grace) * 1_000),
    )
    report.copies, report.copies_deleted = copies.left, copies.deleted
    _clean_machine(work, report, table, erased)
    is_other = searched is not None and report.erasure not in waiting  # a search without records, beside open erasures
    has_builds = _erase_terms(work, report, named, begun_by_ms=work.now_ms() if is_other else since)
    report.is_searched_beside_builds = is_other and has_builds
    if report.purged.left or report.failures or copies.left or report.local or report.rewriters:
        report.unfinished = tuple(waiting)
        return
    _note(work, {key: waiting[key] for key in standing.searched}, report)
    _note_given_up(work, {key: waiting[key] for key in given_up})
    pass_point(RemovalPoint.ERASURE_NOTED)
    work.registry.erasures.finish(work.topic, (*standing.searched, *given_up))
    report.finished, report.given_up = standing.searched, given_up
    report.doubtful = tuple(key for key in standing.searched if waiting[key].get(UNJUDGED))
    report.unfinished = tuple(key for key in waiting if key not in {*standing.searched, *given_up})


def _erase_terms(work: TopicErasure, report: EraseReport, named: Spans, *, begun_by_ms: int) -> bool:
    failures, builds = erase_terms(work, named, begun_by_ms=begun_by_ms)
    report.failures.update(failures)
    report.rewriters = tuple(dict.fromkeys((*report.rewriters, *builds)))
    return bool(builds)


def _clean_machine(work: TopicErasure, report: EraseReport, table: ArchiveTable, erased: Spans) -> None:
    spool = work.config.archive.spool
    archived = {partition: reached.next_offset for partition, reached in table.offsets.items()}
    first_offsets = work.registry.retention.proven_first_offsets(work.topic, table.first_offsets)
    local = remove_local_copies(
        spool, table, erased, archived=archived, first_offsets=first_offsets, formats=work.formats
    )
    report.local, report.local_deleted = local.left, local.deleted
    report.partition_columns = partition_columns(table)
    if report.partition_columns:
        forget_plans(spool)


def _searched_ms(work: TopicErasure, waiting: Mapping[str, Mapping[str, object]], *, is_anew: bool) -> int:
    now_ms = work.now_ms()
    fresh = [erasure for erasure, value in waiting.items() if is_anew or SEARCHED_MS not in value]
    work.registry.erasures.note_searched(work.topic, fresh, now_ms)
    return max(now_ms if erasure in fresh else int(str(value[SEARCHED_MS])) for erasure, value in waiting.items())


def _rewriters(work: TopicErasure, since: int) -> tuple[str, ...]:
    """Runs that may still write erased records. Call it before listing uploads.

    Builds of the index write none, and are waited for with their runs.

    With `orphan_grace = "0s"` the operator vouches that no such run is alive (docs/adr/0052).
    """
    grace = work.config.archive.orphan_grace
    runs = work.registry.claims.runs(work.topic) if grace else ()
    return tuple(
        run.id for run in runs if run.begun_ms <= since and run.is_alive(grace) and not run.id.startswith(CLAIM)
    )


def _waits_for(found: HoldingSnapshots) -> dict[str, object]:
    if not found.owned:
        return {}
    return {"settings": dict(found.settings), "snapshots": [snapshot.snapshot_id for snapshot in found.owned]}


def _note(work: TopicErasure, waiting: Mapping[str, Mapping[str, object]], report: EraseReport) -> None:
    for erasure, value in waiting.items():
        details = {**_lasting(value), "deleted_files": report.purged.deleted, "deleted_copies": report.copies_deleted}
        work.trail(work.topic).record(Noted(kind="erase", id=f"erase-{erasure}", details=details))


def _note_given_up(work: TopicErasure, given_up: Mapping[str, Mapping[str, object]]) -> None:
    for erasure, value in given_up.items():
        work.trail(work.topic).record(Noted(kind="abandon", id=f"abandon-{erasure}", details=_lasting(value)))


def _lasting(value: Mapping[str, object]) -> dict[str, object]:
    return {name: item for name, item in value.items() if name not in {SEARCHED_MS, WAITS_FOR}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Open erasures by progress.

    The last two can't be continued: conditions aren't kept. `superseded` if a later search ended.
    """

    searched: tuple[str, ...]
    superseded: tuple[str, ...]
    unsearched: tuple[str, ...]

    @classmethod
    def of(cls, erasures: Mapping[str, Mapping[str, Any]]) -> Self:
        cut = {key: value for key, value in erasures.items() if not is_searched(value)}
        return cls(
            searched=tuple(erasure for erasure in erasures if erasure not in cut),
            superseded=tuple(key for key, value in cut.items() if SUPERSEDED_BY in value),
            unsearched=tuple(key for key, value in cut.items() if SUPERSEDED_BY not in value),
        )


def is_searched(value: Mapping[str, Any]) -> bool:
    """Whether all records of an erasure are known by offset."""
    return SEARCHED_MS in value or CONDITION not in value
