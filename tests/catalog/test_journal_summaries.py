"""Summaries have their entries' exact bytes."""

from __future__ import annotations

import base64
import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import RegistryOutdated
from catalog.journal_entries import JournaledCommit
from catalog.journal_summaries import CommitEntry, JournalSummary, entries_in
from tests.support.catalog.memory import span


@cache
def entry(number: int, *more: int) -> CommitEntry:
    ranges = tuple(span(partition, number * 10, number * 10 + 10) for partition in (0, *more))
    value = JournaledCommit(commit_id=f"{number:04d}", ranges=ranges).to_json()
    return CommitEntry(f"commit-{number:04d}", json.dumps(value, separators=(",", ":")).encode())


SUMMARY = JournalSummary.of([entry(index) for index in (3, 1, 2)])


def test_it_has_the_bytes_in_the_order_of_names() -> None:
    entries = tuple(entries_in("ignored", SUMMARY.to_bytes()))
    assert entries == SUMMARY.entries
    assert [item.name for item in entries] == ["commit-0001", "commit-0002", "commit-0003"]
    assert entries[0].commit.commit_id == "0001"


def test_same_entries_give_the_same_summary_in_any_order() -> None:
    again = JournalSummary.of([*SUMMARY.entries[::-1], SUMMARY.entries[1]])
    assert again.to_bytes() == SUMMARY.to_bytes()


def test_two_objects_of_one_commit_are_both_kept() -> None:
    """A run that settled a commit knew more of its ranges than the one before."""
    first, second = entry(1), entry(1, 2)
    entries = tuple(entries_in("", JournalSummary.of([first, second]).to_bytes()))
    assert set(entries) == {first, second}


def test_an_object_of_one_commit_is_its_entry() -> None:
    (alone,) = entries_in("commit-0001", entry(1).data)
    assert alone == entry(1)
    spaced = json.dumps(json.loads(entry(1).data), indent=1).encode()
    (alone,) = entries_in("commit-0001", spaced)
    assert alone == entry(1), "an entry is one line"


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(RegistryOutdated):
        tuple(entries_in("", b'{"format": 6}'))
    with pytest.raises(RegistryOutdated):
        tuple(entries_in("", SUMMARY.to_bytes().replace(b'"format":5', b'"format":6')))


@pytest.mark.parametrize(
    "change",
    [
        {"entries": 2},
        {"first": "commit-0000"},
        {"last": "commit-0002"},
        {"bytes": SUMMARY.size - 1},
        {"bytes": SUMMARY.size + 1},
        {"bytes": 10},
        {"sha256": "0" * 64},
        {"lines": ""},
        {"lines": "no base64"},
        {"lines": base64.b64encode(b"no gzip").decode()},
    ],
    ids=str,
)
def test_a_summary_that_says_something_else_is_refused(change: dict[str, object]) -> None:
    value = json.loads(SUMMARY.to_bytes()) | change
    with pytest.raises(ValueError):
        tuple(entries_in("", json.dumps(value).encode()))


@given(st.data())
def test_no_changed_byte_goes_unseen(data: st.DataObject) -> None:
    whole = SUMMARY.to_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    try:
        entries = tuple(entries_in("", changed))
    except (ValueError, KeyError, TypeError, RegistryOutdated):
        return
    assert entries == SUMMARY.entries


def test_entries_that_cannot_both_be_right() -> None:
    commit = entry(1, 2).commit
    assert commit.contradicts(commit) is None
    assert commit.contradicts(JournaledCommit(commit_id="0001", ranges=commit.ranges[:1])) is None
    assert JournaledCommit(commit_id="0001").contradicts(commit) is None
    moved = json.loads(entry(1, 2).data)
    moved["ranges"][1]["end_offset"] += 1
    assert commit.contradicts(JournaledCommit.from_json(moved)) == "the offsets [10, 21) of partition 2"
    counted = json.loads(entry(1, 2).data)
    counted["ranges"][0]["file"]["rows"] += 1
    assert commit.contradicts(JournaledCommit.from_json(counted)) == "the offsets [10, 20) of partition 0"
