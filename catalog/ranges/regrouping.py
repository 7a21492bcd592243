"""Compute the ranges after a rewrite (ADR 0034), refusing losses. Pure, shared by registry and journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias

from catalog.digests import add_digests
from catalog.errors import RewriteRefused
from catalog.model import ulid_in
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from catalog.ranges.spans import joined
from catalog.ranges.stored_ranges import StoredFile, StoredRange, spread

Offsets: TypeAlias = tuple[int, int]

_NAMED: Final = 5


def regrouped(
    rewrite: Rewrite, group: RewriteGroup, held: Iterable[StoredRange], *, is_done: bool
) -> tuple[StoredRange, ...]:
    """Raises RewriteRefused if records are unaccounted for, or removed from foreign files, unless `is_done`.

    Empty if no range of `held` is in the group's files.
    """
    old = [range_ for range_ in held if set(range_.paths) & set(group.known_paths) or lies_elsewhere(range_, group)]
    if not old:
        if not is_done and any(span.erased or span.retired for span in group.all_spans):
            raise RewriteRefused(
                "records are left out on purpose of files that the registry doesn't know, since others wrote them, so"
                " it would still expect these records; nothing was changed. Report it with the files it names",
                command=rewrite.reason,
                offsets=", ".join(f"{span.partition}: {span.span}" for span in group.all_spans[:_NAMED]),
                files=list(group.paths[:_NAMED]),
            )
        return ()
    work = _Regrouping(rewrite, group, old)
    if not is_done:
        work.check_files()
    return tuple(made for part in work.parts() for made in work.successors(part, is_done=is_done))


def lies_elsewhere(one: StoredRange, group: RewriteGroup) -> bool:
    """A rewrite missed the range's rows, and a refill restored them unrecorded."""
    return (
        not one.paths
        and one.expected > 0
        and any(
            span.partition == one.partition
            and span.start_offset < one.end_offset
            and one.start_offset < span.end_offset
            for span in group.all_spans
        )
    )


@dataclass(frozen=True, slots=True)
class _New:
    """`file` is None if no record is left. `is_first` of its file."""

    file: NewFile | None
    span: RecordSpan
    is_first: bool = True


@dataclass(frozen=True, slots=True)
class _Part:
    old: tuple[StoredRange, ...]
    new: dict[Offsets, list[_New]]

    @property
    def all_new(self) -> list[_New]:
        return [item for group in self.new.values() for item in group]


class _Regrouping:
    def __init__(self, rewrite: Rewrite, group: RewriteGroup, old: Sequence[StoredRange]) -> None:
        self._rewrite = rewrite
        self._group = group
        self._old = tuple(old)
        self._paths = frozenset(group.known_paths)

    def parts(self) -> Iterator[_Part]:
        new: dict[int, dict[Offsets, list[_New]]] = defaultdict(lambda: defaultdict(list))
        for item in self._new():
            new[item.span.partition][item.span.start_offset, item.span.end_offset].append(item)
        for partition in sorted({*new, *(range_.partition for range_ in self._old)}):
            old = [range_ for range_ in self._old if range_.partition == partition]
            spans = sorted({*new[partition], *(range_.offsets for range_ in old)})
            for low, high in _overlapping(spans):
                yield _Part(
                    old=tuple(range_ for range_ in old if low <= range_.start_offset < high),
                    new={item: new[partition][item] for item in sorted(new[partition]) if low <= item[0] < high},
                )

    def successors(self, part: _Part, *, is_done: bool) -> Iterator[StoredRange]:
        if not is_done:
            self._check(part)
        kept = tuple(file for range_ in part.old for file in range_.files if not self._is_old(file))
        left = self._expected(part)
        gone = self._old_files(part.old)
        for index, (offsets, new) in enumerate(part.new.items()):
            files = [self._held(item, offsets) for item in new if item.file is not None]
            files = spread(files, left[offsets]) if files else []
            everything = [*kept, *files] or [self._empty(new[0].span)]
            if not files:
                everything[0] = replace(everything[0], expected=everything[0].expected + left[offsets])
            kept = ()
            for item in (item for item in new if item.file is None):
                everything[0] = _counted(everything[0], erased=item.span.erased, retired=item.span.retired)
            if index == 0:  # earlier acceptances have no offsets, so the first range keeps them
                everything[0] = _counted(
                    everything[0],
                    erased=sum(file.erased for file in gone),
                    lost=sum(file.lost for file in gone),
                    retired=sum(file.retired for file in gone),
                )
            yield StoredRange(
                topic=self._old[0].topic,
                partition=new[0].span.partition,
                start_offset=offsets[0],
                end_offset=offsets[1],
                leader_epoch=max((range_.leader_epoch for range_ in part.old), default=-1),
                created_ms=max((range_.created_ms for range_ in part.old), default=0),
                files=tuple(everything),
            )

    def check_files(self) -> None:
        """Raise RewriteRefused for unknown or reused files, repeated offsets, and differing rows or digests."""
        recorded = {path for range_ in self._old for path in range_.paths}
        if recorded and (unknown := sorted(self._paths - recorded)):
            self._refuse("the registry knows only some of the old files: others wrote the rest", files=unknown)
        if again := sorted({*self._group.new_paths} & recorded):
            self._refuse("a new file can't be one of the old ones", files=again)
        for file in self._group.files:
            digest = add_digests(span.digest for span in file.spans)
            if len({(span.partition, span.start_offset, span.end_offset) for span in file.spans}) < len(file.spans):
                self._refuse("a new file names the same offsets twice", files=[file.file.path])
            if file.spans and (
                sum(span.rows for span in file.spans) != file.file.rows
                or (None not in (digest, file.file.digest) and digest != file.file.digest)
            ):
                self._refuse("a new file has other records than its offsets say", files=[file.file.path])

    def _check(self, part: _Part) -> None:
        """Raise RewriteRefused unless all records are in new files or named as gone."""
        covered = [range_.offsets for range_ in part.old]
        if joined(covered) != joined(part.new) or _clash(part.new):
            self._refuse("the new files don't cover the very offsets of the old ones", part)
        if any(set(range_.paths) - self._paths for range_ in part.old) and list(part.new) != covered:
            self._refuse("a range of which other files are left as they are has to keep its borders", part)
        old_files = self._old_files(part.old)
        spans = [item.span for item in part.all_new]
        recorded = sum(file.rows for file in old_files)
        # Rows that a rewrite didn't find, and that are expected still, may be in files that aren't recorded.
        most = sum(max(sum(f.rows for f in files), sum(f.expected for f in files)) for files in self._by_range(part))
        rows, gone = sum(span.rows for span in spans), sum(span.gone for span in spans)
        if any(min(span.rows, span.removed, span.erased, span.retired) < 0 for span in spans):
            self._refuse("the new files have more records than the old ones", part)
        if rows + gone not in (recorded, most):
            self._refuse(
                "the new files don't account for all records of the old ones",
                part,
                old_rows=recorded,
                new_rows=rows,
                left_out=gone,
            )
        before, after = (
            add_digests(file.digest for file in old_files),
            add_digests(item.span.digest for item in part.all_new if item.file is not None),
        )
        if not gone and rows == recorded and None not in (before, after) and before != after:
            self._refuse("the new files have other records than the old ones", part, old=before, new=after)
        if len(part.new) > 1 and any(file.expected != file.rows for file in old_files):
            self._refuse("offsets with rows that are missing or accepted to be gone have to keep their borders", part)

    def _is_old(self, file: StoredFile) -> bool:
        return file.path is None or file.path in self._paths

    def _old_files(self, ranges: Iterable[StoredRange]) -> list[StoredFile]:
        return [file for stored in ranges for file in stored.files if self._is_old(file)]

    def _by_range(self, part: _Part) -> Iterator[list[StoredFile]]:
        return (self._old_files((stored,)) for stored in part.old)

    def _expected(self, part: _Part) -> dict[Offsets, int]:
        files = self._old_files(part.old)
        on_purpose = sum(item.span.erased + item.span.retired for item in part.all_new)
        if len(part.new) == 1:
            return dict.fromkeys(part.new, max(0, sum(file.expected for file in files) - on_purpose))
        return {
            offsets: sum(item.span.rows + max(0, item.span.removed) for item in group)
            for offsets, group in part.new.items()
        }

    def _new(self) -> Iterator[_New]:
        for file in self._group.files:
            for number, span in enumerate(file.spans or self._same_offsets(file)):
                yield _New(file, span, is_first=number == 0)
        for span in self._group.emptied:
            yield _New(None, span)

    def _same_offsets(self, new: NewFile) -> list[RecordSpan]:
        """Several ranges in the old file stay as they were."""
        sources = [(range_, file) for range_ in self._old for file in range_.files if file.path in self._paths]
        if len(sources) == 1:
            rows, digest = new.file.rows, new.file.digest
            return [_span(*sources[0], rows=rows, digest=digest)]
        return [_span(range_, file, rows=file.rows, digest=file.digest) for range_, file in sources]

    def _held(self, new: _New, offsets: Offsets) -> StoredFile:
        assert new.file is not None
        span, file = new.span, new.file.file
        name = ulid_in(file.path)
        at = f"{span.partition}-{offsets[0]}"
        number = self._group.files.index(new.file)
        return StoredFile(
            id=(name if new.is_first else f"{name}-{at}") if name else f"{self._rewrite.commit_id}-{at}-{number}",
            file=file,
            rows=span.rows,
            digest=span.digest,
            expected=span.rows,
            schema_version=self._rewrite.schema_version,
            commit_id=self._rewrite.commit_id,
            erased=span.erased,
            retired=span.retired,
        )

    def _empty(self, span: RecordSpan) -> StoredFile:
        return StoredFile(
            id=f"{self._rewrite.commit_id}-{span.partition}-{span.start_offset}",
            file=None,
            rows=0,
            digest=None,
            expected=0,
            schema_version=self._rewrite.schema_version,
            commit_id=self._rewrite.commit_id,
        )

    def _refuse(self, message: str, part: _Part | None = None, **context: object) -> None:
        if part is not None:
            spans = joined([*(range_.offsets for range_ in part.old), *part.new])
            paths = [path for range_ in part.old for path in range_.paths if path in self._paths]
            context = {
                "partition": part.old[0].partition if part.old else part.all_new[0].span.partition,
                "offsets": ", ".join(f"[{start}, {end})" for start, end in spans),
                "files": paths[:_NAMED],
                "new_files": [item.file.file.path for item in part.all_new if item.file][:_NAMED],
                **context,
            }
        raise RewriteRefused(
            f"{message}; nothing was changed. Run it again, and report it if that doesn't help",
            topic=self._old[0].topic,
            command=self._rewrite.reason,
            **context,
        )


def _span(one: StoredRange, file: StoredFile, *, rows: int, digest: str | None) -> RecordSpan:
    return RecordSpan(
        partition=one.partition,
        start_offset=one.start_offset,
        end_offset=one.end_offset,
        rows=rows,
        digest=digest,
        removed=file.rows - rows,
    )


def _counted(file: StoredFile, *, erased: int = 0, lost: int = 0, retired: int = 0) -> StoredFile:
    return replace(file, erased=file.erased + erased, lost=file.lost + lost, retired=file.retired + retired)


def _overlapping(spans: Sequence[Offsets]) -> Iterator[Offsets]:
    """Adjacent spans don't overlap."""
    low, high = None, 0
    for start, end in spans:
        if low is not None and start < high:
            high = max(high, end)
            continue
        if low is not None:
            yield low, high
        low, high = start, end
    if low is not None:
        yield low, high


def _clash(spans: Iterable[Offsets]) -> bool:
    return any(after[0] < before[1] for before, after in pairwise(sorted(spans)))
