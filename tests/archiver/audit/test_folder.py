"""Packs and entries of a trail's folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from archiver.audit.export import export
from archiver.audit.folder import PackLimits
from archiver.errors import ConfigError, StorageDenied, StorageError
from archiver.storage.objects import ObjectStore
from catalog.iceberg.deletion_gate import Permit
from tests.support.archive.audit_trails import Written, acts, checked


@pytest.fixture
def written(tmp_path: Path) -> Written:
    trail = Written.begin(tmp_path / "made", PackLimits(least=4, most=6, least_packs=3))
    trail.add(*acts(20))
    trail.sign()
    return trail


def lines(written: Written) -> dict[int, bytes]:
    return {line.place: line.data for line in written.folder.lines()}


def test_packs_have_the_same_bytes(written: Written) -> None:
    before = lines(written)
    assert written.folder.pack(through=17) == 17
    assert len(written.files("entries-*")) == 3
    assert len(written.files("entry-*")) == 3
    assert lines(written) == before
    assert checked(written.path, [written.signing.public]).is_whole
    assert written.folder.pack(through=17) == 0
    assert written.folder.listed().last == 20


def test_a_pack_that_was_cut_short_reads_the_same(written: Written) -> None:
    before, singles = lines(written), {path: path.read_bytes() for path in written.files("entry-*")}
    written.folder.pack(through=17)
    for path in list(singles)[3:9]:
        path.write_bytes(singles[path])
    assert lines(written) == before
    assert checked(written.path, [written.signing.public]).is_whole
    assert [line.place for line in written.folder.lines(first=20)] == [20]


def test_what_is_left_of_packed_entries_is_removed(written: Written) -> None:
    before, singles = lines(written), {path: path.read_bytes() for path in written.files("entry-*")}
    written.folder.pack(through=17)
    for path in list(singles)[3:9]:
        path.write_bytes(singles[path])
    changed = list(singles)[5]
    changed.write_bytes(singles[changed].replace(b"orders", b"others"))
    assert written.folder.pack(through=17) == 0
    assert written.files("entry-*") == [changed, *list(singles)[17:]], "another entry with that number is evidence"
    assert [str(problem.kind) for problem in checked(written.path, []).problems] == ["conflict"]
    changed.unlink()
    assert lines(written) == before


def old(written: Written) -> None:
    for path in written.files("entr*"):
        os.utime(path, (0, 0))


def test_small_packs_are_packed_together(written: Written) -> None:
    before = lines(written)
    written.folder.pack(through=17)
    assert written.folder.pack(through=17) == 0, "packs that are young may be missing in somebody's list"
    old(written)
    assert written.folder.pack(through=17) == 3
    assert len(written.files("entries-*")) == 1
    assert lines(written) == before
    assert checked(written.path, [written.signing.public]).is_whole


def test_a_changed_pack_is_not_packed_again(written: Written) -> None:
    written.folder.pack(through=17)
    path = written.files("entries-*")[1]
    path.write_bytes(path.read_bytes().replace(b'"rows":10', b'"rows":11'))
    old(written)
    with pytest.raises(StorageError, match="isn't what its name says"):
        written.folder.pack(through=17)
    assert len(written.files("entries-*")) == 3


def test_a_store_that_keeps_everything_keeps_both(
    written: Written, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = lines(written)

    def denied(_: object, path: str, permit: Permit) -> None:
        raise StorageDenied("it is kept", file=path)

    monkeypatch.setattr(ObjectStore, "delete", denied)
    folder = written.folder
    assert folder.pack(through=17) == 17
    for _ in range(3):
        assert folder.pack(through=17) == 0, "nothing is written again and again"
    assert (len(written.files("entry-*")), len(written.files("entries-*"))) == (20, 3)
    assert lines(written) == before
    assert len(caplog.records) == 1


def test_an_entry_is_written_again_but_never_replaced(written: Written) -> None:
    written.folder.write(20, lines(written)[20].decode())
    with pytest.raises(StorageError, match="another entry"):
        written.folder.write(20, lines(written)[19].decode())


def test_a_copy_keeps_places_where_entries_are_missing(written: Written, tmp_path: Path) -> None:
    written.files("entry-*")[7].unlink()
    assert export(written.folder, tmp_path / "copy") == 19
    assert [entry.name[:29] for entry in sorted((tmp_path / "copy").glob("entries-*"))] == [
        "entries-0000000001-0000000007",
        "entries-0000000009-0000000020",
    ]
    problems = checked(tmp_path / "copy", [written.signing.public]).problems
    assert [(problem.kind, problem.entry) for problem in problems] == [("missing", 8)]
    with pytest.raises(ConfigError, match="isn't empty"):
        export(written.folder, tmp_path / "copy")
