"""Tampering with a trail."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.audit.entry import Draft
from archiver.audit.folder import PackLimits
from archiver.audit.signing import PublicKey
from tests.support.archive.audit_trails import AUTHOR, EMPTY, Written, acts, appended, checked

SIGNED, ALL = 30, 33


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    trail = Written.begin(tmp_path_factory.mktemp("audit") / "of_orders", PackLimits(least=4))
    for number, act in enumerate(acts(ALL), 1):
        trail.add(act)
        if number in {10, 20, SIGNED}:
            trail.sign()
    assert trail.folder.pack(through=12) == 12
    return trail


@pytest.fixture(scope="module")
def key(written: Written) -> PublicKey:
    return written.signing.public


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("copies")


def copy_of(written: Written, copies: Path) -> Path:
    target = copies / "copy"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(written.path, target)
    return target


def test_the_trail_as_it_was_written_is_whole(written: Written, key: PublicKey) -> None:
    report = checked(written.path, [key])
    assert report.problems == []
    assert (report.entries, report.signed, report.unsigned, report.checkpoints) == (ALL, SIGNED, 3, 3)
    assert report.last_hash == written.head.last_hash
    assert report.digest == written.head.digest


@given(data=st.data())
def test_a_changed_byte_is_found(written: Written, key: PublicKey, copies: Path, data: st.DataObject) -> None:
    target = copy_of(written, copies)
    names = sorted(
        entry.name for entry in target.iterdir() if not entry.name.startswith("entry-") or _number(entry) <= 30
    )
    path = target / data.draw(st.sampled_from(names))
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)

    assert not checked(target, [key]).is_whole


@given(data=st.data())
def test_a_dropped_object_is_found(written: Written, key: PublicKey, copies: Path, data: st.DataObject) -> None:
    """Except after the last checkpoint, and the last checkpoint itself."""
    target = copy_of(written, copies)
    names = sorted(entry.name for entry in target.iterdir())
    free = [name for name in names if name.startswith("checkpoint-")][-1:]
    free += [name for name in names if name.startswith("entry-") and _number(target / name) > SIGNED]
    dropped = data.draw(st.sets(st.sampled_from(sorted(set(names) - set(free))), min_size=1))
    for name in dropped:
        (target / name).unlink()

    assert not checked(target, [key]).is_whole


@given(data=st.data())
def test_objects_in_each_others_places_are_found(
    written: Written, key: PublicKey, copies: Path, data: st.DataObject
) -> None:
    target = copy_of(written, copies)
    first, second = data.draw(st.sampled_from([(a, b) for a in range(13, ALL) for b in range(a + 1, ALL + 1)]))
    paths = [target / f"entry-{number:010d}.json" for number in (first, second)]
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(content)

    assert not checked(target, [key]).is_whole


@given(start=st.integers(13, SIGNED))
def test_a_chain_forged_from_an_entry_on_is_found(written: Written, key: PublicKey, copies: Path, start: int) -> None:
    """A forger without the key computes all later hashes again."""
    target = copy_of(written, copies)
    forged = Written(path=target, signing=written.signing, head=EMPTY)
    drafts = [Draft.from_json(json.loads(line.data)) for line in written.folder.lines()]
    for number, draft in enumerate(drafts, 1):
        act = Draft.of_act(appended(1000), draft.subject, AUTHOR, is_late=False) if number == start else draft
        entry = act.at(forged.head)
        if number >= start:
            (target / f"entry-{number:010d}.json").write_text(entry.line)
        forged.head = replace(forged.head, entries=number, last_hash=entry.hash, digest=entry.digest)
    report = checked(target, [key])

    assert {problem.kind for problem in report.problems} == {"root"}
    assert checked(target, []).problems != []


@given(left=st.integers(0, SIGNED - 1))
def test_a_trail_cut_off_before_a_checkpoint_is_found(
    written: Written, key: PublicKey, copies: Path, left: int
) -> None:
    target = copy_of(written, copies)
    for path in target.glob("entr*"):
        if path.suffix == ".json" and _number(path) > left:
            path.unlink()
        elif path.suffix == ".jsonl" and left < 12:
            lines = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b"".join(lines[:left]))
    report = checked(target, [key])

    assert "truncated" in {problem.kind for problem in report.problems}


def test_entries_cut_off_with_a_kept_checkpoint_are_found(written: Written, key: PublicKey, copies: Path) -> None:
    """The store alone can't show it: the trail is as at the checkpoint before."""
    target = copy_of(written, copies)
    last = max(target.glob("checkpoint-*"))
    kept = {"kept.json": last.read_bytes()}
    last.unlink()
    for path in target.glob("entry-*"):
        if _number(path) > 20:
            path.unlink()

    assert checked(target, [key]).is_whole
    assert {problem.kind for problem in checked(target, [key], kept=kept).problems} == {"truncated"}
    assert {problem.kind for problem in checked(target, [key], max_age=0.0).problems} == {"checkpoint"}


def _number(path: Path) -> int:
    return int(path.stem.rpartition("-")[2]) if path.name.startswith("entry-") else 0
