"""Looks terms up in runs, one request for each run and term. Unreadable runs cover nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np

from archiver.errors import StorageError
from archiver.index.store import leaf_bytes
from archiver.storage.formats import LeafReader
from archiver.storage.objects import ObjectStore
from archiver.storage.postings import Mask, Numbers, Spots
from catalog.term_runs import IndexState, TermRun

_LOG: Final = logging.getLogger(__name__)

AT_ONCE: Final = 8
MOST_LEAVES: Final = 256
"""Leaves of a lookup: about 80 MB. For more terms, the files are read instead."""
_NO_FILES: Final = frozenset[str]()


@dataclass(frozen=True, slots=True)
class IndexedTerm:
    column: str
    term: int


@dataclass(slots=True, kw_only=True)
class TermLookup:
    """`problem` is why some or all runs weren't used. `leaves` were read."""

    state: IndexState
    spots: Mapping[IndexedTerm, Spots] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    problem: str | None = None
    leaves: int = 0

    @classmethod
    def of(
        cls, state: IndexState, terms: Iterable[IndexedTerm], objects: ObjectStore, *, most: int = MOST_LEAVES
    ) -> Self:
        """Errors of runs are logged."""
        distinct = set(terms)
        leaves: dict[tuple[int, int], list[IndexedTerm]] = {}
        for number, run in enumerate(state.runs):
            for term in distinct:
                if term.column == run.column:
                    for leaf in run.leaves.of_term(term.term):
                        leaves.setdefault((number, leaf), []).append(term)
        if len(leaves) > most:
            return cls(state=IndexState(files={}), problem="the condition has more values than the index is read for")
        readers = [LeafReader(run.path, run.leaves, run.footer) for run in state.runs]
        spots: dict[IndexedTerm, list[Spots]] = {term: [] for term in distinct}
        failed = set[str]().union(*state.files.values()) - {run.id for run in state.runs}  # merged since
        problem: str | None = None
        with ThreadPoolExecutor(min(AT_ONCE, len(leaves)) or 1, thread_name_prefix="index") as pool:
            reads = {
                key: pool.submit(_read, state.runs[key[0]], readers[key[0]], key[1], named, objects)
                for key, named in leaves.items()
            }
            for (number, _), read in reads.items():
                try:
                    for term, spot in read.result().items():
                        spots[term].append(spot)
                except StorageError as error:
                    failed.add(state.runs[number].id)
                    problem = str(error)
        if problem is not None:
            _LOG.warning("%d runs of the index can't be read; their files are searched: %s", len(failed), problem)
        return cls(
            state=state,
            spots={term: Spots.joined(parts) for term, parts in spots.items()},
            failed=frozenset(failed),
            problem=problem,
            leaves=len(leaves),
        )

    def covers(self, column: str, paths: Sequence[str]) -> Mask:
        runs = (self.state.files.get((column, path), _NO_FILES) for path in paths)
        return np.fromiter((bool(ids) and ids.isdisjoint(self.failed) for ids in runs), np.bool_, len(paths))

    def touch(self, term: IndexedTerm, boxes: Sequence[Numbers]) -> Mask:
        """`boxes` are lowest and highest partition, lowest and highest offset."""
        spots = self.spots.get(term)
        return (
            np.zeros(len(boxes[0]), np.bool_) if spots is None else spots.touch(boxes[0], boxes[1], boxes[2], boxes[3])
        )


def _read(
    run: TermRun, reader: LeafReader, leaf: int, terms: Sequence[IndexedTerm], objects: ObjectStore
) -> dict[IndexedTerm, Spots]:
    _, start, size, _ = run.leaves.row(leaf)
    rows = reader.rows(leaf, leaf_bytes(objects, run.path, start, size))
    return {term: Spots.of([rows], term.term) for term in terms}
