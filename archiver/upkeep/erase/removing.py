"""Remove an erasure's rows from the table, searching again if other engines change files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from archiver.archive.table_files import TableFile
from archiver.commit.find_holes import search
from archiver.commit.known_rows import named
from archiver.errors import UpkeepError
from archiver.rewrite.rounds import commit_batches, in_rounds
from archiver.rewrite.upload_claims import UploadClaims
from archiver.upkeep.erase.consent import ErasureConsent
from archiver.upkeep.erase.metadata import NamedRecords, doom, entries_of, keys_of
from archiver.upkeep.erase.report import EraseFailed, EraseReport, FileSearched, FilesSearched, RecordsFound
from archiver.upkeep.erase.spans import Span, are_known, counted, in_order, left_of
from archiver.upkeep.erase.topic import TopicErasure, refuse_unerasable
from archiver.upkeep.known_holds import holds_in_force
from archiver.upkeep.removal.components import Component, components
from archiver.upkeep.removal.conditions import AtOffsets, Condition, Matching
from archiver.upkeep.removal.rewriting import Removal, RemovalResult
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import file_name, new_id
from catalog.ranges.legal_holds import of_config
from catalog.ranges.rewrite import Rewrite
from catalog.registry.erased_offsets import UNJUDGED
from catalog.registry.holds import refuse_held
from catalog.registry.removable import RemovableRange

REASON: Final = "erase"
BATCH: Final = 200
"""How many components one commit writes anew."""


def erase_rows(
    work: TopicErasure,
    condition: Condition,
    report: EraseReport,
    *,
    erasure: str,
    value: Mapping[str, object],
    dry_run: bool = False,
    consent: ErasureConsent | None = None,
) -> bool:
    """Rewrite files without matching rows, and record their offsets. Return whether the search ended.

    `value` is kept until the erasure is finished. Raises ConsentMissing before the first commit.
    """

    def attempt() -> bool | None:
        metadata = entries_of(work)
        removal = Removal(condition=condition, fate="erased", why=f"erasure {erasure}", keys=keys_of(metadata))
        results, files = _search(work, removal, report, claims, dry_run=dry_run)
        spans = [item for result in results for item in result.removed]
        if spans:
            report.spans = in_order([*report.spans, *spans])  # files of an earlier attempt may have landed
            report.offsets = counted(report.spans)
        _refuse_held(work, spans, recalls=not dry_run)
        named_by = NamedRecords.of(condition, spans, (key for result in results for key in result.keys))
        report.metadata = {*report.metadata, *(entry.id for entry in named_by.among(metadata))}
        if dry_run:
            report.rows = sum(item.rows for item in results)
            report.files = sum(1 for item in results if item.rows)
            return False
        if consent is not None:
            if consent.asks:
                work.observer(RecordsFound(rows=sum(result.rows for result in results)))
            consent.check(report, files=sum(1 for result in results if result.rows))
        unjudged = sum(report.unjudged_records.values()) if isinstance(condition, Matching) else 0
        details = {**value, UNJUDGED: unjudged} if unjudged else value
        if results:
            refuse_unerasable(work.catalog.reload(work.table))
            _refuse_held(work, spans, recalls=True)  # while somebody consented; an open erasure refuses metadata
            work.registry.erasures.begin(work.topic, erasure, dict(details))
        metadata = entries_of(work, settled=True)
        if not keys_of(metadata) <= removal.keys:
            return None  # set since the search began, which didn't look for this key
        report.metadata = {*report.metadata, *(entry.id for entry in named_by.among(metadata))}
        _refuse_held(work, spans, recalls=True)  # held records keep their metadata
        # Before the commit: a run that continues this one doesn't know the keys.
        doom(work, named_by.among(metadata))
        if results and not _commit(work, results, files, report):
            return None
        # Inside of the run: who sees it neither alive nor searched may take it for dead.
        if not results and isinstance(condition, AtOffsets):
            return False  # an erasure of nothing takes the place of no other
        return _is_search(condition) and not report.failures and _ended(work, erasure, details)

    with UploadClaims.of_run(work.registry, work.topic, is_noted=not dry_run) as claims:
        return in_rounds(attempt, table=work.topic.table, may_be="records can be erased")


def _refuse_held(work: TopicErasure, spans: Sequence[Span], *, recalls: bool) -> None:
    holds = holds_in_force(work.topic, work.journal, work.registry, recalls=recalls)
    refuse_held(work.topic, (*of_config(hold=work.archived.config.hold), *holds), spans, command=REASON)


def _is_search(condition: Condition) -> bool:
    return isinstance(condition, Matching) or (isinstance(condition, AtOffsets) and condition.is_search)


def _ended(work: TopicErasure, erasure: str, value: Mapping[str, object]) -> bool:
    # Whoever reads files from here on has none of these records.
    return work.registry.erasures.end_search(work.topic, erasure, value, work.now_ms())


def _search(
    work: TopicErasure, removal: Removal, report: EraseReport, claims: UploadClaims, *, dry_run: bool
) -> tuple[list[RemovalResult], dict[str, TableFile]]:
    condition = removal.condition
    ranges = work.registry.retention.ranges(work.topic)  # before the table: so it has them
    expected = work.registry.rows.expected_ranges(work.topic)
    table = work.catalog.reload(work.table)
    first = work.registry.retention.proven_first_offsets(work.topic, table.first_offsets)
    holes = search(table, expected, first, formats=work.formats)
    if holes:
        raise UpkeepError(
            "the table lacks archived rows, and those to be erased may be among them: run `archiver refill TOPIC`"
            " first, which brings them back. Only if they were removed on purpose, note them as erased with"
            " --accept-removed",
            topic=work.topic.topic,
            missing=named(holes),
        )
    files = work.files(table)
    grouped = components(ranges, files)
    for file in grouped.strangers:
        _fail(work, report, file.path, unknown_rows(file))
    retired = retired_components(work.registry.retention.retired_files(work.topic), files)
    matching = [item for item in (*grouped.all, *retired) if may_match(item, condition)]
    work.observer(FilesSearched(files=sum(len(item.files) for item in matching), size_bytes=sum(map(_size, matching))))
    erased = work.registry.erasures.offsets(work.topic)
    results: list[RemovalResult] = []
    unjudged: list[tuple[int, int, int]] = []
    for component, outcome in work.remove(matching, removal, table, claims, dry_run=dry_run):
        if outcome.result is None:
            assert outcome.error is not None
            path = next((file.path for file in component.files), component.recorded[0])
            report.failures[path] = outcome.error
            work.observer(EraseFailed(path=path, error=outcome.error))
            continue
        result = outcome.result
        unjudged += result.unjudged
        work.observer(FileSearched(files=len(component.files), rows=result.rows))
        # What only the store has stays there until nothing refers to it: it is erased once.
        if result.removed and (component.files or not are_known(result.removed, erased)):
            results.append(result)
    if isinstance(condition, Matching):
        report.unjudged = left_of(unjudged, [item for result in results for item in result.removed], erased)
    return results, {file.path: file for file in files}


def _commit(
    work: TopicErasure, found: Sequence[RemovalResult], known: Mapping[str, TableFile], report: EraseReport
) -> bool:
    """Return False if other engines changed a file."""

    def plan(batch: Sequence[RemovalResult], table: ArchiveTable) -> Rewrite:
        refuse_unerasable(table)
        return Rewrite(
            commit_id=new_id(),
            reason=REASON,
            schema_version=table.ledger_version,
            groups=tuple(result.group for result in batch if result.group),
            erased=tuple(span for result in batch for span in result.removed),
        )

    def landed(batch: Sequence[RemovalResult], rewrite: Rewrite) -> None:
        report.commits.append(rewrite.commit_id)
        report.rows += sum(result.rows for result in batch)
        report.files += sum(len(group.paths) for group in rewrite.groups)

    batches = [found[start : start + BATCH] for start in range(0, len(found), BATCH)]
    return commit_batches(work, work.table, batches, known=known, plan=plan, landed=landed)


def _fail(work: TopicErasure, report: EraseReport, path: str, error: UpkeepError) -> None:
    report.failures[path] = error
    work.observer(EraseFailed(path=path, error=error))


def _size(each: Component) -> int:
    return each.size_bytes


def may_match(each: Component, condition: Condition) -> bool:
    match condition:
        case Matching(where, ends):
            for range_ in each.ranges:
                bounds = where.bounds(range_.partition) if range_.partition in ends else None
                if (
                    bounds is not None
                    and range_.start_offset <= bounds.high_offset
                    and range_.end_offset > bounds.low_offset
                ):
                    return True
            return False
        case AtOffsets(spans):
            return any(
                start < range_.end_offset and range_.start_offset < end
                for range_ in each.ranges
                for start, end in spans.get(range_.partition, ())
            )
        case _:
            return True


def retired_components(ranges: Iterable[RemovableRange], files: Iterable[TableFile]) -> list[Component]:
    """Files that only the store still has are searched, never rewritten."""
    present = {file_name(file.path) for file in files}
    by_path: dict[str, list[RemovableRange]] = {}
    for range_ in ranges:
        for path in range_.paths:
            if file_name(path) not in present:
                by_path.setdefault(path, []).append(range_)
    return [
        Component(ranges=tuple(members), files=(), recorded=(path,), has_foreign=True)
        for path, members in by_path.items()
    ]


def unknown_rows(file: TableFile) -> UpkeepError:
    return UpkeepError(
        "the registry has no range of this file's rows, so they can't be accounted for; it wasn't searched. Run"
        " `archiver registry rebuild`, which adds ranges that journal or footers know. If none does, it isn't known"
        " whose rows these are: compare them with Kafka before you change them (`archiver verify --against-kafka`)",
        file=file.path,
    )
