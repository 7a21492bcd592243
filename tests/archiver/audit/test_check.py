"""Findings of an audit check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from archiver.audit.acts import Appended, Began, Rewrote
from archiver.audit.signing import SigningKey
from archiver.audit.trails import FoundTrail
from archiver.errors import BadSegment
from catalog.model import DataFileInfo, new_id
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from tests.support.archive.audit_trails import SUBJECT, Written, acts, appended, checked


@pytest.fixture
def written(tmp_path: Path) -> Written:
    trail = Written.begin(tmp_path / "made")
    trail.add(*acts(8))
    trail.sign()
    return trail


def kinds(written: Written, *keys: SigningKey) -> list[str]:
    return [str(problem.kind) for problem in checked(written.path, [key.public for key in keys]).problems]


def test_entries_after_the_checkpoint_are_counted_as_unsigned(written: Written) -> None:
    written.add(*acts(4)[2:])
    report = checked(written.path, [written.signing.public])
    assert (report.entries, report.signed, report.unsigned, report.is_whole) == (10, 8, 2, True)
    assert (report.topic, report.table) == ("orders", "kafka.orders")
    written.files("entry-*")[-1].unlink()
    assert checked(written.path, [written.signing.public]).is_whole


def test_an_entry_of_another_table_is_misplaced(written: Written) -> None:
    written.add(appended(1), subject=replace(SUBJECT, table_uuid="another"))
    assert kinds(written, written.signing) == ["misplaced"]


def test_digests_have_to_follow(written: Written) -> None:
    written.head = replace(written.head, digest="0" * 31 + "1")
    written.add(appended(1))
    assert kinds(written, written.signing) == ["digest"]


def test_an_entry_that_is_no_entry_is_damaged(written: Written) -> None:
    path = written.files("entry-*")[3]
    path.write_bytes(b" " + path.read_bytes())
    assert kinds(written, written.signing) == ["damaged", "broken"]


def test_a_checkpoint_by_another_key_is_not_trusted(written: Written, tmp_path: Path) -> None:
    other_key = SigningKey.generate(tmp_path / "other", tmp_path / "other.pub")
    assert kinds(written, other_key) == ["signature"]
    assert kinds(written) == []
    written.signing = other_key
    written.add(appended(1))
    written.sign()
    assert kinds(written, other_key) == ["signature", "checkpoint"]


def test_nothing_is_signed_over_entries_that_were_changed(written: Written) -> None:
    written.add(*acts(6)[2:])
    path = written.files("entry-*")[-2]
    path.write_bytes(path.read_bytes().replace(b'"rows":10', b'"rows":11'))
    with pytest.raises(BadSegment, match="was changed or is gone"):
        written.sign()
    path.unlink()
    with pytest.raises(BadSegment, match="was changed or is gone"):
        written.sign()


def test_the_digest_of_the_table_follows_rewrites(tmp_path: Path) -> None:
    trail = Written.begin(tmp_path / "made")
    first, second = appended(1), appended(2)
    trail.add(Began(is_new=True), first, second)
    (first_file,), (second_file,) = first.ranges[0].files, second.ranges[0].files
    both = replace(first_file, path="s3://lake/both.parquet", rows=20, digest=f"{3:032x}")
    trail.add(Rewrote(rewrite=rewrite("compact", (first_file.path, second_file.path), both)))
    assert trail.head.digest == f"{3:032x}"
    left = replace(first_file, path="s3://lake/left.parquet")
    trail.add(Rewrote(rewrite=rewrite("retire", (both.path,), left, retired=10), old_digest=both.digest))
    assert trail.head.digest == f"{1:032x}"
    report = checked(trail.path, [])
    assert (report.is_whole, report.digest) == (True, f"{1:032x}")
    *_, last = FoundTrail(folder=trail.folder).entries()
    details = last["details"]
    assert details["left_out"] == {"retired": 10}
    assert details["why"] == ["by retire"]


def test_files_without_digests_leave_the_tables_unknown(tmp_path: Path) -> None:
    trail = Written.begin(tmp_path / "made")
    existing = appended(1)
    nameless = replace(existing.ranges[0], files=(replace(existing.ranges[0].files[0], digest=None),))
    trail.add(Began(is_new=True), Appended(ranges=(nameless,), commit_id=new_id()), existing)
    assert trail.head.digest is None
    assert checked(trail.path, []).is_whole


def rewrite(reason: str, old: tuple[str, ...], new: DataFileInfo, *, retired: int = 0) -> Rewrite:
    span = RecordSpan(partition=0, start_offset=10, end_offset=30, rows=new.rows, retired=retired)
    group = RewriteGroup(paths=old, files=(NewFile(file=new, spans=(span,)),), why=f"by {reason}" if retired else "")
    return Rewrite(commit_id=new_id(), reason=reason, schema_version=1, groups=(group,))
