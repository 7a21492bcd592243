"""Outcomes of rewrites with expired snapshots."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from archiver.rewrite.settling import RewriteOutcome, outcome_of
from catalog.model import new_id
from catalog.ranges.rewrite import RecordSpan, Rewrite, RewriteGroup

OLD, OTHER = "old.parquet", "other.parquet"
GONE = RecordSpan(partition=0, start_offset=0, end_offset=7, retired=7)


def retired(*paths: str) -> Rewrite:
    groups = (RewriteGroup(paths=paths, emptied=(GONE,), why="too old"),) if paths else ()
    return Rewrite(commit_id=new_id(), reason="expire", schema_version=1, groups=groups, first_offsets={0: 7})


def judged(
    one: Rewrite, *, table: int = 7, recorded: int = 0, there: tuple[str, ...] = (), takers: set[str] | None = None
) -> RewriteOutcome:
    has = cast("Any", SimpleNamespace(topic=None, first_offsets={0: table}))
    registry = cast("Any", SimpleNamespace(retention=SimpleNamespace(first_offsets=lambda _: {0: recorded})))
    journal = cast("Any", SimpleNamespace(takers=lambda _: takers or set()))
    return outcome_of(one, has, there, registry, journal)


@pytest.mark.parametrize(
    ("table", "recorded", "outcome"),
    [(7, 0, RewriteOutcome.LANDED), (7, 7, RewriteOutcome.DISPLACED), (6, 0, RewriteOutcome.OPEN)],
)
def test_unrecorded_first_offset_shows_a_landed_rewrite(table: int, recorded: int, outcome: RewriteOutcome):
    assert judged(retired(), table=table, recorded=recorded) == outcome


def test_gone_files_show_a_landed_rewrite_unless_journaled():
    rewrite = retired(OLD)
    assert judged(rewrite) == RewriteOutcome.LANDED
    assert judged(rewrite, takers={"another"}) == RewriteOutcome.DISPLACED
    assert judged(rewrite, takers={"another", rewrite.commit_id}) == RewriteOutcome.LANDED


def test_while_all_of_its_files_are_there_it_may_land():
    rewrite = retired(OLD, OTHER)
    assert judged(rewrite, there=(OLD, OTHER)) == RewriteOutcome.OPEN
    assert judged(rewrite, there=(OLD,)) == RewriteOutcome.DISPLACED
