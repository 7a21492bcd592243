"""First offsets of the property alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from archiver.storage.journal_survey import JournalSurvey
from archiver.upkeep.verify.evidence import Evidence, evidence_of
from archiver.upkeep.verify.findings import FaultKind
from archiver.upkeep.verify.sources import RegistryState, VerifySources
from catalog.iceberg.archive_table import ArchiveTable
from catalog.journal_entries import JournaledCommit, JournaledStarts
from catalog.model import PartitionOffset, new_id
from catalog.ranges.holes import Acceptance
from catalog.ranges.rewrite import Rewrite
from catalog.ranges.stored_ranges import StoredRange
from tests.support.catalog.memory import MemoryCatalog, span

RANGE = span(0, 0, 100)


class Claiming(ArchiveTable):
    @property
    def first_offsets(self) -> dict[int, int]:
        return {0: 50}

    @property
    def offsets(self) -> dict[int, PartitionOffset]:
        return {0: PartitionOffset(next_offset=100)}


def expired(first_offset: int) -> JournaledCommit:
    rewrite = Rewrite(commit_id=new_id(), reason="expire", schema_version=1, groups=(), first_offsets={0: first_offset})
    return JournaledCommit(commit_id=rewrite.commit_id, ranges=(), rewrite=rewrite)


def journal_of(*more: JournaledCommit, accepted: tuple[Acceptance, ...] = ()) -> JournalSurvey:
    commits = (JournaledCommit(commit_id="A", ranges=(RANGE,)), *more)
    return JournalSurvey(
        commits=tuple((f"commit-{number}", commit) for number, commit in enumerate(commits)),
        starts=(JournaledStarts(starts={0: 0}),),
        accepted=accepted,
        unreadable={},
    )


def state(first: Mapping[int, int] | None = None, proven: Mapping[int, int] | None = None) -> RegistryState:
    return RegistryState(
        ranges=(StoredRange.of(RANGE, commit_id="A"),),
        account=(),
        is_in_doubt=False,
        mappings={},
        first_offsets=first or {},
        proven_offsets=proven or {},
    )


def evidence(folder: Path, journal: JournalSurvey, registry: RegistryState | None) -> Evidence:
    table = MemoryCatalog(folder / "table").load()
    claiming = Claiming(topic=table.topic, iceberg=table.iceberg)
    return evidence_of(
        VerifySources(
            table=claiming,
            journal=journal,
            has_journal=not journal.is_empty,
            registry=registry,
            told={},
            reach=claiming.offsets,
        )
    )


def first_offset(verified: Evidence) -> int:
    (claimed,) = verified.ranges
    return claimed.first_offset


def named(verified: Evidence) -> list[tuple[int | None, int | None]]:
    faults = [fault for fault in verified.faults if fault.kind is FaultKind.HISTORY]
    assert all("archiver.first-offsets" in fault.message for fault in faults)
    return [(fault.start_offset, fault.end_offset) for fault in faults]


@pytest.mark.parametrize("registry", [None, state()], ids=["without registry", "with registry"])
def test_a_property_that_nothing_else_names_is_a_fault(tmp_path: Path, registry: RegistryState | None) -> None:
    verified = evidence(tmp_path, journal_of(), registry)
    assert (first_offset(verified), named(verified)) == (0, [(0, 50)])


def test_a_property_beyond_the_expired_offsets_is_a_fault(tmp_path: Path) -> None:
    verified = evidence(tmp_path, journal_of(expired(20)), state({0: 30}, {0: 30}))
    assert (first_offset(verified), named(verified)) == (30, [(30, 50)])


@pytest.mark.parametrize(
    ("journal", "registry"),
    [
        (journal_of(expired(50)), None),
        (journal_of(expired(50)), state()),
        (journal_of(), state({0: 50}, {0: 50})),
        (journal_of(), state(proven={0: 50})),
    ],
    ids=["journal", "journal and an older registry", "registry", "a rewrite that isn't settled"],
)
def test_expired_offsets_are_retired(tmp_path: Path, journal: JournalSurvey, registry: RegistryState | None) -> None:
    verified = evidence(tmp_path, journal, registry)
    assert (first_offset(verified), named(verified)) == (50, [])


def test_offsets_of_a_rebuild_are_neither_retired_nor_a_fault(tmp_path: Path) -> None:
    verified = evidence(tmp_path, JournalSurvey(unreadable={}), state({0: 50}))
    assert (first_offset(verified), named(verified)) == (0, [])


def test_a_journal_begun_after_the_partition_faults_no_property(tmp_path: Path) -> None:
    younger = JournalSurvey(commits=journal_of().commits, unreadable={})
    verified = evidence(tmp_path, younger, None)
    assert (first_offset(verified), named(verified)) == (0, [])


@pytest.mark.parametrize("is_applied", [True, False])
def test_accepted_spans_need_an_applied_acceptance(tmp_path: Path, *, is_applied: bool) -> None:
    rows = sum(file.rows for file in RANGE.files)
    acceptance = Acceptance(
        range_id="X",
        left=rows - 2 if is_applied else rows - 1,
        erased=2,
        paths=tuple(file.path for file in RANGE.files),
        partition=0,
        start_offset=0,
        offsets=((5, 7),),
    )
    (claimed,) = evidence(tmp_path, journal_of(accepted=(acceptance,)), None).ranges
    assert claimed.accepted == (((5, 7),) if is_applied else ())
