"""Reads a whole journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from archiver.errors import ObjectMissing, StorageUnavailable
from archiver.storage.journal import TableJournal
from archiver.storage.journal_commits import READERS, agreeing, readable
from catalog.journal_entries import JournaledCommit, JournaledSchema, JournaledStarts
from catalog.ranges.holes import Acceptance, acceptances_from_json
from schema_mapping.errors import ContextError

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSurvey:
    """Entries, perhaps repeated. `unreadable` maps paths to errors."""

    commits: tuple[tuple[str, JournaledCommit], ...] = ()
    schemas: tuple[JournaledSchema, ...] = ()
    starts: tuple[JournaledStarts, ...] = ()
    accepted: tuple[Acceptance, ...] = ()
    unreadable: Mapping[str, ContextError]

    @property
    def is_empty(self) -> bool:
        return not (self.commits or self.schemas or self.starts or self.unreadable)


def survey(journal: TableJournal) -> JournalSurvey:
    """Raise subclasses of StorageError only if the store can't be reached."""
    if journal.folder is None:
        return JournalSurvey(unreadable={})
    unreadable: dict[str, ContextError] = {}
    tell = unreadable.__setitem__
    entries = tuple(agreeing(journal.commits.read(unreadable=tell), tell))
    paths = sorted(listed.path for listed in journal.objects.list(journal.folder))

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
            return tuple(entry for entry in pool.map(read, named) if entry is not None)

    return JournalSurvey(
        commits=entries,
        schemas=every("schema-", JournaledSchema.from_json),
        starts=every("starts-", JournaledStarts.from_json),
        accepted=tuple(chain.from_iterable(every("accepted-", acceptances_from_json))),
        unreadable=unreadable,
    )
