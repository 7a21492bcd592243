"""Checks summaries of retained snapshots against the journal and the records read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyiceberg.table.snapshots import Snapshot

from archiver.storage.journal_survey import JournalSurvey
from archiver.upkeep.verify.findings import Fault, FaultKind, Proof, Proven
from archiver.upkeep.verify.late_entry import LateEntry
from catalog.digests import DIGEST_ALGORITHM, add_digests, digest_text
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import history, summary_of
from catalog.iceberg.offsets import decode_ranges, spans
from catalog.journal_entries import JournaledCommit
from catalog.ranges.spans import uncovered

_ADVICE: Final = "the metadata file or the journal's entry was changed; restore it from a backup"


def check_summaries(
    table: ArchiveTable, journal: JournalSurvey, *, is_in_doubt: bool, late: LateEntry
) -> Iterator[Fault]:
    """The newest snapshot may lack an entry if `is_in_doubt`, and so may the `late` one."""
    commits: dict[str, JournaledCommit] = {}
    for _, commit in journal.commits:
        if commit.commit_id is not None:
            earlier = commits.get(commit.commit_id)
            commits[commit.commit_id] = commit if earlier is None else earlier.joined(commit)
    covered = _covered(journal)
    newest = True
    first = min(commits, default="")
    for snapshot in history(table.iceberg.metadata):
        summary = summary_of(snapshot)
        commit_id = summary.get(keys.COMMIT_ID)
        if commit_id is None:
            continue
        entry = commits.get(commit_id)
        if entry is not None:
            yield from _compared(snapshot, summary, entry)
        elif commit_id == late.commit_id:
            continue
        elif keys.REFILLED not in summary and commit_id >= first and not (newest and is_in_doubt):
            yield from _absent(snapshot, summary, covered)
        newest = False


def check_digests(table: ArchiveTable, proven: Sequence[Proven]) -> Iterator[Fault]:
    """Only commits whose records are all proven."""
    by_partition: dict[int, list[Proven]] = {}
    for span in proven:
        if span.proof is Proof.DIGEST:
            by_partition.setdefault(span.partition, []).append(span)
    for snapshot in history(table.iceberg.metadata):
        summary = summary_of(snapshot)
        if keys.RANGES not in summary or summary.get(keys.DIGEST_ALGORITHM) != DIGEST_ALGORITHM or keys.LOST in summary:
            continue
        parts: list[Proven] = []
        for partition, (start, end) in _spans(summary).items():
            candidates = by_partition.get(partition, ())
            inside = [span for span in candidates if span.start_offset >= start and span.end_offset <= end]
            if uncovered([(start, end)], [(span.start_offset, span.end_offset) for span in inside]):
                break  # a rewrite joined these offsets with more, or some of them aren't proven
            parts += inside
        else:
            digest = digest_text(sum(int(part.digest, 16) for part in parts))
            if digest != summary.get(keys.DIGEST):
                yield _fault(
                    snapshot, f"says the digest {summary.get(keys.DIGEST)}, its records have {digest}: {_ADVICE}"
                )


def _compared(snapshot: Snapshot, told: Mapping[str, str], commit: JournaledCommit) -> Iterator[Fault]:
    if keys.REWRITE in told:
        if commit.rewrite is None:
            yield _fault(snapshot, f"is a rewrite, and the journal says that its commit wasn't: {_ADVICE}")
            return
        digest = add_digests(file.digest for file in commit.rewrite.new_files)
        if None not in (digest, told.get(keys.REWRITTEN_DIGEST)) and digest != told.get(keys.REWRITTEN_DIGEST):
            yield _fault(
                snapshot, f"says the digest {told.get(keys.REWRITTEN_DIGEST)}, the journal {digest}: {_ADVICE}"
            )
        return
    if keys.RANGES not in told:
        return
    if told.get(keys.DIGEST_ALGORITHM) == DIGEST_ALGORITHM:
        digest = add_digests(range_.digest for range_ in commit.ranges)
        if digest is not None and digest != told.get(keys.DIGEST):
            yield _fault(snapshot, f"says the digest {told.get(keys.DIGEST)}, the journal {digest}: {_ADVICE}")
    try:
        journaled = spans(commit.ranges)
    except ValueError as error:
        yield _fault(snapshot, f"is one chain of offsets, in the journal it isn't ({error}): {_ADVICE}")
        return
    if (named := _spans(told)) != journaled:
        yield _fault(snapshot, f"brought the offsets {named}, by the journal {journaled}: {_ADVICE}")


def _absent(
    snapshot: Snapshot, told: Mapping[str, str], covered: Mapping[int, list[tuple[int, int]]]
) -> Iterator[Fault]:
    """Commits may be journaled by range after their snapshot."""
    named = _spans(told)
    if named and not any(uncovered([span], covered.get(partition, ())) for partition, span in named.items()):
        return
    yield Fault(
        kind=FaultKind.JOURNAL,
        message=f"the journal has no entry of the commit {told[keys.COMMIT_ID]} (snapshot {snapshot.snapshot_id},"
        f" offsets {named}): it was removed, or its job was killed and the registry lost. `archiver registry rebuild`"
        " writes it from the snapshot if the files of the commit are still there; else restore it from a backup",
    )


def _covered(journal: JournalSurvey) -> dict[int, list[tuple[int, int]]]:
    by_partition: dict[int, list[tuple[int, int]]] = {}
    for _, commit in journal.commits:
        for range_ in commit.ranges:
            by_partition.setdefault(range_.partition, []).append((range_.start_offset, range_.end_offset))
    return by_partition


def _spans(told: Mapping[str, str]) -> dict[int, tuple[int, int]]:
    try:
        return decode_ranges(told.get(keys.RANGES, "{}"))
    except (ValueError, TypeError, AttributeError, json.JSONDecodeError):
        return {}


def _fault(snapshot: Snapshot, message: str) -> Fault:
    return Fault(kind=FaultKind.SUMMARY, message=f"the summary of snapshot {snapshot.snapshot_id} {message}")
