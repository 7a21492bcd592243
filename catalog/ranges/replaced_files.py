"""Files that left the table, with the commit that replaced them.

A refill may need them, and erasures delete them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from catalog.model import file_name
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from catalog.ranges.stored_ranges import StoredFile, StoredRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedFile:
    """The range's `file` is None for a file of another engine, of which only the offsets are known."""

    path: str
    range: StoredRange
    replaced_by: str | None
    reason: str

    @classmethod
    def of_range(cls, stored: StoredRange, *, paths: Iterable[str], replaced_by: str | None, reason: str) -> list[Self]:
        selected = frozenset(paths)
        return [
            cls(path=file.path, range=replace(stored, files=(file,)), replaced_by=replaced_by, reason=reason)
            for file in stored.files
            if file.path is not None and file.path in selected
        ]

    @property
    def other_id(self) -> str:
        """The registry's id if another file has the range's."""
        return f"{self.replaced_by}-{self.range.partition}-{self.range.start_offset}-{file_name(self.path)}"


def removal_reason(rewrite: Rewrite, group: RewriteGroup | None = None) -> str:
    """The command comes first, as `removable.removed_files` reads it."""
    why = f": {group.why}" if group is not None and group.why else ""
    return f"{rewrite.reason}: commit {rewrite.commit_id}{why}"


def files_of_other_engines(
    rewrite: Rewrite, group: RewriteGroup, old: Iterable[StoredRange], recorded: Iterable[str]
) -> Iterator[ReplacedFile]:
    """The old files that aren't `recorded`, for erasures to find.

    None if rows were deleted and no range is known: nothing else may have these rows.
    """
    old, spans = tuple(old), group.all_spans
    if not spans or not (old or not any(span.removed for span in spans)):
        return
    paths = frozenset(recorded)
    topic = old[0].topic if old else ""
    for path in (path for path in group.paths if path not in paths):
        for partition in sorted({span.partition for span in spans}):
            own_spans = [span for span in spans if span.partition == partition]
            unknown = StoredFile(
                id=f"{rewrite.commit_id}-{partition}-{file_name(path)}",
                file=None,
                rows=0,
                digest=None,
                expected=0,
                schema_version=rewrite.schema_version,
            )
            yield ReplacedFile(
                path=path,
                range=StoredRange(
                    topic=topic,
                    partition=partition,
                    start_offset=min(span.start_offset for span in own_spans),
                    end_offset=max(span.end_offset for span in own_spans),
                    leader_epoch=-1,
                    created_ms=0,
                    files=(unknown,),
                ),
                replaced_by=rewrite.commit_id,
                reason=removal_reason(rewrite),
            )
