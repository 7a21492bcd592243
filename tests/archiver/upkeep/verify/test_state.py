"""The state of an unfinished verification."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from archiver.archive.table_files import TableFile, ValueBounds
from archiver.upkeep.verify.file import FileToRead, VerifiedFile
from archiver.upkeep.verify.findings import Fault, FaultKind
from archiver.upkeep.verify.state import SETTLED_MS, VerifyState
from archiver.upkeep.verify.tally import TallyCut, TallyPiece

CUT = TallyCut(partition=0, start_offset=0, end_offset=10)
WANTED = FileToRead(
    file=TableFile(
        path="s3://b/a.parquet",
        format="parquet",
        rows=10,
        size_bytes=9,
        spec_id=0,
        partition_values=(),
        partitions=ValueBounds(0, 0),
        offsets=ValueBounds(0, 9),
        latest=None,
    ),
    cuts=(CUT,),
)
RESULT = VerifiedFile(
    path="s3://b/a.parquet",
    size_bytes=9,
    modified_ms=5,
    rows=10,
    pieces=(TallyPiece(cut=CUT, rows=10, digest="0" * 32, low=0, high=9, gaps=((2, 3),)),),
)


def test_a_result_counts_for_the_same_object_and_cuts_only(tmp_path: Path) -> None:
    table = uuid4()
    state = VerifyState.open(tmp_path / "spool", table, max_age=60)
    assert WANTED not in state
    state.keep([(WANTED, RESULT)])
    second = replace(WANTED, file=replace(WANTED.file, path="s3://b/b.parquet"))
    state.keep([(second, replace(RESULT, faults=(Fault(kind=FaultKind.DAMAGED, message="x"),)))])
    state.close()
    again = VerifyState.open(tmp_path / "spool", table, max_age=60)
    assert again.find(WANTED, 9, 5) == RESULT
    assert again.find(WANTED, 9, 6) is None
    assert again.find(WANTED, 8, 5) is None
    assert again.find(WANTED, 9, None) is None
    assert second not in again, "what has faults is read again"
    assert replace(WANTED, cuts=(replace(CUT, end_offset=5),)) not in again
    again.finish()
    assert WANTED not in VerifyState.open(tmp_path / "spool", table, max_age=60)


def test_files_without_modification_times_are_read_again(tmp_path: Path) -> None:
    table = uuid4()
    state = VerifyState.open(tmp_path / "spool", table, max_age=60)
    state.keep([(WANTED, replace(RESULT, modified_ms=None))])
    state.close()
    assert VerifyState.open(tmp_path / "spool", table, max_age=60).find(WANTED, 9, None) is None


def test_object_young_at_run_start_is_read_again(tmp_path: Path) -> None:
    """Its store has whole seconds: another object in the same second would look the same."""
    table, now_ms = uuid4(), time.time_ns() // 1_000_000
    state = VerifyState.open(tmp_path / "spool", table, max_age=60)
    young, old = now_ms - SETTLED_MS + 2_000, now_ms - SETTLED_MS - 2_000
    second = replace(WANTED, file=replace(WANTED.file, path="s3://b/b.parquet"))
    state.keep([(WANTED, replace(RESULT, modified_ms=young))])
    state.keep([(second, replace(RESULT, modified_ms=old))])
    state.close()
    again = VerifyState.open(tmp_path / "spool", table, max_age=60)
    assert again.find(WANTED, 9, young) is None
    assert again.find(second, 9, old) is not None


def test_cut_and_changed_lines_and_old_results_dont_count(tmp_path: Path) -> None:
    table = uuid4()
    state = VerifyState.open(tmp_path / "spool", table, max_age=60)
    state.keep([(WANTED, RESULT)])
    state.close()
    assert WANTED not in VerifyState.open(tmp_path / "spool", table, max_age=-1)
    text = state.path.read_text()
    for changed in (text[: len(text) // 2], text.replace('"rows":10', '"rows":11'), "no line\n"):
        state.path.write_text(changed)
        assert WANTED not in VerifyState.open(tmp_path / "spool", table, max_age=60)
    state.path.write_text(text)
    assert WANTED in VerifyState.open(tmp_path / "spool", table, max_age=60)
    assert (state.path.stat().st_mode & 0o777, state.path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
