"""The account under random acts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.account import acts
from catalog.account.chains import IntervalChains
from catalog.account.comparison import compare, differences
from catalog.account.interval import Interval
from catalog.current_ranges import current_ranges
from catalog.digests import digest_text
from catalog.journal_entries import JournaledCommit
from catalog.model import new_id
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import Acceptance
from catalog.ranges.regrouping import regrouped
from catalog.ranges.retirement import is_left_below, retired_below, summed_up
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from catalog.ranges.stored_ranges import StoredRange
from tests.support.catalog.memory import file, span


def digest_of(offsets: Iterable[int]) -> str:
    return digest_text(sum(pow(7, offset + 1, 1 << 128) for offset in offsets))


@dataclass(slots=True)
class Books:
    """A registry's partition 0. `rows` are the offsets that each file must have: the model of the test."""

    by_id: dict[str, StoredRange] = field(default_factory=dict)
    account: IntervalChains = field(default_factory=IntervalChains)
    entries: list[tuple[str, JournaledCommit]] = field(default_factory=list)
    accepted: list[Acceptance] = field(default_factory=list)
    rows: dict[str, set[int]] = field(default_factory=dict)
    expected: set[int] = field(default_factory=set)
    first_offset: int = 0
    end: int = 0

    def commit(self, gaps: set[int], length: int) -> None:
        offsets = set(range(self.end, self.end + length)) - {self.end + gap for gap in gaps}
        archived = span(0, self.end, self.end + length)
        info = file(f"s3://b/orders-{new_id().lower()}.parquet", rows=len(offsets))
        archived = replace(archived, files=(replace(info, digest=digest_of(offsets)),) if offsets else ())
        self.end += length
        self.expected |= offsets
        if offsets:
            self.rows[archived.files[0].path] = offsets
        stored = StoredRange.of(archived, commit_id=new_id())
        self.by_id[stored.id] = stored
        fresh = (Interval.of(stored),)
        around = OffsetRange(0, max(0, archived.start_offset - 1), archived.end_offset - 1)
        self.account.act((around,), lambda intervals: acts.summed_up(acts.recorded(intervals, fresh), {}))
        self.entries.append((stored.files[0].commit_id or "", JournaledCommit(commit_id="", ranges=(archived,))))

    def ranges(self) -> list[StoredRange]:
        return sorted(self.by_id.values(), key=lambda stored: stored.start_offset)

    def with_files(self) -> list[StoredRange]:
        return [stored for stored in self.ranges() if stored.paths]

    def rewrite(self, chosen: list[StoredRange], erased: set[int], *, keeps_digest: bool, merges: bool) -> None:
        rows = {stored.id: self.rows[stored.paths[0]] for stored in chosen}
        merges = merges and all(before.end_offset == after.start_offset for before, after in pairwise(chosen))
        merges = merges and all(stored.rows == stored.expected for stored in chosen)
        parts = [chosen] if merges else [[stored] for stored in chosen]
        files, emptied = [], []
        for part in parts:
            present = set().union(*(rows[stored.id] for stored in part))
            going = present & erased & self.expected
            kept = present - erased
            record = RecordSpan(
                partition=0,
                start_offset=part[0].start_offset,
                end_offset=part[-1].end_offset,
                rows=len(kept),
                digest=digest_of(kept) if kept else None,
                erased=len(going),
                removed=sum(stored.rows for stored in part) - len(kept) - len(going),
                gone_digest=digest_of(going) if going and keeps_digest else None,
            )
            self.expected -= going
            if not kept:
                emptied.append(record)
                continue
            path = f"s3://b/new-{new_id().lower()}.parquet"
            self.rows[path] = kept
            info = replace(file(path, rows=len(kept)), digest=record.digest)
            files.append(NewFile(file=info, spans=(record,)))
        group = RewriteGroup(
            paths=tuple(path for stored in chosen for path in stored.paths),
            files=tuple(files),
            emptied=tuple(emptied),
            why="request" if erased else "",
        )
        self.put(Rewrite(commit_id=new_id(), reason="erase", schema_version=1, groups=(group,)))

    def put(self, rewrite: Rewrite) -> None:
        for group in rewrite.groups:
            old = [stored for stored in self.by_id.values() if set(stored.paths) & set(group.known_paths)]
            for stored in old:
                del self.by_id[stored.id]
            self.by_id |= {stored.id: stored for stored in regrouped(rewrite, group, old, is_done=True)}
            spans = acts.spans_of(group)
            self.account.act(
                (stored.offsets for stored in spans),
                lambda intervals, spans=spans: acts.rewritten(intervals, spans, rewrite.commit_id),
            )
        for partition, first in rewrite.first_offsets.items():
            for stored in [stored for stored in self.by_id.values() if is_left_below(stored, first)]:
                del self.by_id[stored.id]
                made = retired_below(stored, rewrite.commit_id)
                self.by_id[made.id] = made
            self.by_id = {stored.id: stored for stored in summed_up(self.by_id.values(), {partition: first})}
            below = (OffsetRange(partition, 0, first - 1),)
            self.account.act(
                below,
                lambda intervals: acts.summed_up(acts.retired(intervals, rewrite.first_offsets), rewrite.first_offsets),
            )
        self.entries.append((rewrite.commit_id, JournaledCommit(commit_id=rewrite.commit_id, rewrite=rewrite)))

    def lose(self, stored: StoredRange, count: int, *, by_engines: bool) -> None:
        path = stored.paths[0]
        gone = set(sorted(self.rows[path] & self.expected)[:count])
        self.rows[path] = self.rows[path] - gone
        self.expected -= gone
        fate = {"erased": len(gone)} if by_engines else {"lost": len(gone)}
        accepted = Acceptance(
            range_id=stored.id,
            left=stored.expected - len(gone),
            paths=stored.paths,
            partition=0,
            start_offset=stored.start_offset,
            **fate,
        )
        self.accepted.append(accepted)
        self.by_id[stored.id] = stored.without(left=accepted.left, erased=accepted.erased, lost=accepted.lost)
        at = OffsetRange.half_open(0, stored.start_offset, stored.end_offset)
        self.account.act(
            (at,), lambda intervals: acts.accepted(intervals, at, removed=accepted.erased, lost=accepted.lost)
        )

    def retire(self, first: int) -> None:
        if first > self.first_offset:
            self.first_offset = first
            self.expected = {offset for offset in self.expected if offset >= first}
            self.put(
                Rewrite(commit_id=new_id(), reason="expire", schema_version=1, groups=(), first_offsets={0: first})
            )

    def check(self) -> None:
        live, ranges = self.account.intervals, self.ranges()
        assert compare(live, ranges) == ()
        for stored in live:
            offsets = {offset for offset in self.expected if stored.offsets.first <= offset <= stored.offsets.last}
            assert stored.expected == len(offsets)
            assert stored.digest in (None, digest_of(offsets)), stored
        folded = current_ranges(self.entries, self.accepted)
        assert compare(folded.account, folded.ranges) == ()
        assert differences(live, folded.account) == ()
        intervals = {stored.offsets: stored.digest for stored in live}
        assert all(intervals.get(stored.offsets, stored.digest) == stored.digest for stored in folded.account)
        assert len(live) <= len(self.entries)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_live_account_is_that_of_the_journal_and_of_the_files(data: st.DataObject) -> None:
    books = Books()
    for _ in range(data.draw(st.integers(1, 12), "acts")):
        match data.draw(st.sampled_from(("commit", "commit", "rewrite", "erase", "lose", "retire")), "act"):
            case "commit":
                length = data.draw(st.integers(1, 6))
                books.commit(data.draw(st.sets(st.integers(0, 5), max_size=6)), length)
            case "retire":
                starts = [stored.start_offset for stored in books.ranges()] + [books.end]
                books.retire(data.draw(st.sampled_from(starts)))
            case act:
                present = books.with_files()
                if not present:
                    continue
                start = data.draw(st.integers(0, len(present) - 1))
                chosen = present[start : start + data.draw(st.integers(1, 3))]
                if act == "lose":
                    if chosen[0].expected:
                        count = data.draw(st.integers(1, chosen[0].expected))
                        books.lose(chosen[0], count, by_engines=data.draw(st.booleans()))
                    continue
                rows = sorted(set().union(*(books.rows[stored.paths[0]] for stored in chosen)) & books.expected)
                erased = (
                    set(data.draw(st.lists(st.sampled_from(rows), max_size=3))) if rows and act == "erase" else set()
                )
                books.rewrite(chosen, erased, keeps_digest=data.draw(st.booleans()), merges=data.draw(st.booleans()))
        books.check()
