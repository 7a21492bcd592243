"""Everything in a table's journal, object by object, for those who judge it: what can't be read is told beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from archiver.errors import ObjectMissing, StorageUnavailable
from archiver.storage.journal import TableJournal
from archiver.storage.journal_commits import READERS, agreeing, readable
from catalog.journal_entries import JournaledCommit, JournaledSchema, JournaledStarts
from catalog.ranges.holes import Acceptance
from schema_mapping.errors import ContextError

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSurvey:
    """The entries of a journal. A commit may come twice.

    `unreadable` are objects that can't be read, or whose entries contradict those of other objects, by path.
    """

    commits: tuple[tuple[str, JournaledCommit], ...] = ()
    schemas: tuple[JournaledSchema, ...] = ()
    starts: tuple[JournaledStarts, ...] = ()
    accepted: tuple[Acceptance, ...] = ()
    unreadable: Mapping[str, ContextError]

    @property
    def is_empty(self) -> bool:
        """Whether there is no entry at all."""
        return not (self.commits or self.schemas or self.starts or self.unreadable)


def survey(journal: TableJournal) -> JournalSurvey:
    """Read a journal. Raises the leaves of StorageError only where the store can't be asked."""
    if journal.folder is None:
        return JournalSurvey(unreadable={})
    unreadable: dict[str, ContextError] = {}
    tell = unreadable.__setitem__
    found = tuple(agreeing(journal.commits.read(unreadable=tell), tell))
    paths = sorted(each.path for each in journal.objects.list(journal.folder))

    def every(prefix: str, parse: Callable[[dict[str, Any]], Record]) -> tuple[Record, ...]:
        def read(path: str) -> Record | None:
            try:
                data = journal.objects.read(path)
                with readable(path):
                    return parse(json.loads(data))
            except (ObjectMissing, StorageUnavailable):
                raise
            except ContextError as error:
                unreadable[path] = error
                return None

        named = [path for path in paths if path.rpartition("/")[2].startswith(prefix)]
        with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
            return tuple(each for each in pool.map(read, named) if each is not None)

    return JournalSurvey(
        commits=found,
        schemas=every("schema-", JournaledSchema.from_json),
        starts=every("starts-", JournaledStarts.from_json),
        accepted=tuple(each for those in every("accepted-", _accepted) for each in those),
        unreadable=unreadable,
    )


def _accepted(value: dict[str, Any]) -> tuple[Acceptance, ...]:
    return tuple(map(Acceptance.from_json, value["accepted"]))
