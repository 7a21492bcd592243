"""A journal with commits two hours old, and a store that interferes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlparse

from ulid import ULID

from archiver.storage.journal import TableJournal
from archiver.storage.journal_commits import JournalCommits
from archiver.storage.objects import ListedObject, ObjectStore
from catalog.iceberg.deletion_gate import Permit
from catalog.model import TranslatedRange
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from catalog.ranges.stored_ranges import StoredRange
from tests.support.catalog.memory import file, span

HOUR = 3_600
COMMITS = 12


class Killed(Exception): ...


def commit_name(age_seconds: float) -> str:
    return str(ULID.from_timestamp(time.time() - age_seconds))


def empty_journal(folder: Path) -> TableJournal:
    return TableJournal(root=folder.as_uri(), folder=f"{folder.as_uri()}/table")


def old_journal(folder: Path) -> TableJournal:
    """Commit 5 has no files; one commit rewrites the third's first file."""
    journal = empty_journal(folder)
    third: str | None = None
    for number in range(COMMITS):
        name = commit_name(2 * HOUR - number)
        ranges = [span(value, number * 10, number * 10 + 10, with_file=number != 5) for value in range(2)]
        journal.keep_commit(name, ranges)
        if number == 3:
            third = path_of(ranges[0])
    assert third is not None
    journal.keep_rewrite(rewrite(third, commit_name(HOUR + 600)))
    age(journal)
    return journal


def path_of(one: TranslatedRange) -> str:
    assert one.file is not None
    return one.file.path


def rewrite(path: str, commit_id: str) -> Rewrite:
    made = file(f"file:///nowhere/t-reprocessed-{commit_id.lower()}.parquet")
    return Rewrite(commit_id=commit_id, reason="test", schema_version=2, groups=(RewriteGroup.of_file(path, made),))


def age(journal: TableJournal, hours: float = 2) -> None:
    at = time.time() - hours * HOUR
    for value in Path(urlparse(str(journal.folder)).path).glob("*"):
        os.utime(value, (at, at))


def names(journal: TableJournal) -> list[str]:
    return sorted(entry.name for entry in ObjectStore().list(str(journal.folder)))


def held(journal: TableJournal) -> list[tuple[Any, ...]]:
    files = held_files(journal.read().ranges)
    assert len({value[:2] for value in files}) == len(files)
    return files


def held_files(ranges: Iterable[StoredRange]) -> list[tuple[Any, ...]]:
    return [
        (item.partition, item.start_offset, item.end_offset, file.file, file.commit_id)
        for item in ranges
        for file in item.files
    ]


def entries(journal: TableJournal) -> dict[str, set[str]]:
    result: dict[str, set[str]] = {}
    for entry in journal.commits.read():
        result.setdefault(entry.name, set()).add(json.dumps(entry.commit.to_json(), sort_keys=True))
    return result


def merged(values: Mapping[str, bytes]) -> bytes:
    value = {"format": 2, "commits": {name: json.loads(data) for name, data in sorted(values.items())}}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass
class Troubled:
    befall: Callable[[int], object] = lambda _: None
    refuses: Callable[[str], bool] = lambda _: False
    refusal: Exception | None = None
    steps: int = 0
    removals: int = 0
    written: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(ObjectStore(), name)

    def of(self, journal: TableJournal) -> JournalCommits:
        return JournalCommits(folder=str(journal.folder), objects=cast("ObjectStore", self))

    def _step(self) -> None:
        step = self.steps
        self.steps += 1
        self.befall(step)

    def write(self, path: str, data: bytes) -> None:
        self._step()
        self.written.append(path)
        ObjectStore().write(path, data)

    def delete_unchanged(self, listed: ListedObject, permit: Permit) -> bool:
        self._step()
        self.removals += 1
        if self.refuses(listed.name):
            assert self.refusal is not None
            raise self.refusal
        return ObjectStore().delete_unchanged(listed, permit)
