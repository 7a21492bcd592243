"""A rewrite as a value. One file for one keeps the first JSON format, readable by old archivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain, repeat
from typing import Any, Self

from catalog.model import DataFileInfo, file_from_json, file_json


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSpan:
    """Half-open offsets in a new file.

    `erased` and `retired` records (`gone_digest`) were left out on purpose, `removed` ones deleted by other engines.
    """

    partition: int
    start_offset: int
    end_offset: int
    rows: int = 0
    digest: str | None = None
    removed: int = 0
    erased: int = 0
    retired: int = 0
    gone_digest: str | None = None

    @property
    def span(self) -> str:
        return f"[{self.start_offset}, {self.end_offset})"

    @property
    def gone(self) -> int:
        return self.removed + self.erased + self.retired

    def to_json(self) -> dict[str, Any]:
        """The group keeps `gone_digest`: older archivers refuse unknown keys here."""
        value = asdict(self)
        del value["gone_digest"]
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """Without `spans` it has the offsets of the one old file. `is_sorted` if in the archiver's sort order."""

    file: DataFileInfo
    spans: tuple[RecordSpan, ...] = ()
    is_sorted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteGroup:
    """New files and `emptied` spans cover exactly the old offsets.

    `recorded` are the registered paths if other engines rewrote these to `paths`.
    """

    paths: tuple[str, ...]
    files: tuple[NewFile, ...] = ()
    emptied: tuple[RecordSpan, ...] = ()
    why: str = ""
    recorded: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.paths or len(set(self.paths)) < len(self.paths):
            raise ValueError(f"a group replaces files, each once: {self.paths}")
        if not self.is_plain and not all(file.spans for file in self.files):
            raise ValueError(f"each new file has to name its offsets where {len(self.paths)} files are regrouped")
        if any(empty.rows for empty in self.emptied):
            raise ValueError("emptied offsets have no rows")
        if not self.why and any(span.erased or span.retired for span in self.all_spans):
            raise ValueError("a rewrite that leaves records out on purpose has to say why")

    @classmethod
    def of_file(cls, path: str, file: DataFileInfo, *, is_sorted: bool = True) -> Self:
        return cls(paths=(path,), files=(NewFile(file=file, is_sorted=is_sorted),))

    @property
    def is_plain(self) -> bool:
        is_same = len(self.paths) == len(self.files) == 1 and not self.emptied and not self.files[0].spans
        return is_same and not self.recorded

    @property
    def known_paths(self) -> tuple[str, ...]:
        return self.recorded or self.paths

    @property
    def all_spans(self) -> tuple[RecordSpan, ...]:
        return (*chain.from_iterable(file.spans for file in self.files), *self.emptied)

    @property
    def new_paths(self) -> tuple[str, ...]:
        return tuple(file.file.path for file in self.files)

    def to_json(self) -> dict[str, Any]:
        return {
            "paths": list(self.paths),
            "files": [
                file_json(file.file) | {"spans": [span.to_json() for span in file.spans], "is_sorted": file.is_sorted}
                for file in self.files
            ],
            "emptied": [span.to_json() for span in self.emptied],
            "why": self.why,
            **({"recorded": list(self.recorded)} if self.recorded else {}),
            **({"gone_digests": digests} if any(digests := [span.gone_digest for span in self.all_spans]) else {}),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        digests = chain(value.get("gone_digests", ()), repeat(None))
        files = tuple(
            NewFile(
                file=file_from_json(file),
                spans=tuple(RecordSpan(**span, gone_digest=next(digests)) for span in file["spans"]),
                is_sorted=file["is_sorted"],
            )
            for file in value["files"]
        )
        emptied = tuple(RecordSpan(**span, gone_digest=next(digests)) for span in value["emptied"])
        return cls(
            paths=tuple(value["paths"]),
            files=files,
            emptied=emptied,
            why=value["why"],
            recorded=tuple(value.get("recorded", ())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """One commit's groups. `reason` is the command. `erased` are (partition, start, end).

    Everything below `first_offsets` is retired.
    """

    commit_id: str
    reason: str
    schema_version: int
    groups: tuple[RewriteGroup, ...]
    first_offsets: Mapping[int, int] = field(default_factory=dict)
    erased: tuple[tuple[int, int, int], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether every archiver can read it."""
        return all(group.is_plain for group in self.groups) and not self.removes

    @property
    def removes(self) -> bool:
        left_out = any(span.erased or span.retired for group in self.groups for span in group.all_spans)
        return left_out or bool(self.first_offsets or self.erased)

    def is_moved_in(self, first_offsets: Mapping[int, int]) -> bool:
        return all(first_offsets.get(partition, 0) >= offset for partition, offset in self.first_offsets.items())

    @property
    def is_of_known_files(self) -> bool:
        """Whether archivers without first offsets and erasures read it correctly."""
        return not (self.first_offsets or self.erased or any(group.recorded for group in self.groups))

    @property
    def known_paths(self) -> tuple[str, ...]:
        return tuple(path for group in self.groups for path in group.known_paths)

    @property
    def old_paths(self) -> tuple[str, ...]:
        return tuple(path for group in self.groups for path in group.paths)

    @property
    def new_files(self) -> tuple[DataFileInfo, ...]:
        return tuple(file.file for group in self.groups for file in group.files)

    @property
    def new_paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.new_files)

    def to_json(self) -> dict[str, Any]:
        """Plain groups use the first JSON format."""
        about = {"commit_id": self.commit_id, "reason": self.reason, "schema_version": self.schema_version}
        if not self.is_plain:
            more: dict[str, Any] = {"groups": [group.to_json() for group in self.groups]}
            if self.first_offsets:
                more["first_offsets"] = {str(item): offset for item, offset in sorted(self.first_offsets.items())}
            if self.erased:
                more["erased"] = [list(item) for item in self.erased]
            return about | more
        return about | {
            "replacements": [
                {"path": group.paths[0], **file_json(file.file), "is_sorted": file.is_sorted}
                for group in self.groups
                for file in group.files
            ]
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        groups: Iterable[RewriteGroup]
        if "groups" in value:
            groups = map(RewriteGroup.from_json, value["groups"])
        else:
            groups = (
                RewriteGroup.of_file(
                    replacement["path"], file_from_json(replacement), is_sorted=replacement["is_sorted"]
                )
                for replacement in value["replacements"]
            )
        return cls(
            commit_id=value["commit_id"],
            reason=value["reason"],
            schema_version=value["schema_version"],
            groups=tuple(groups),
            first_offsets={int(number): offset for number, offset in value.get("first_offsets", {}).items()},
            erased=tuple((partition, start, end) for partition, start, end in value.get("erased", ())),
        )
