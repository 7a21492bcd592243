"""Rules out files and blocks by runs of the term store. Without a readable run any value is possible."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive import file_columns
from archiver.archive.topic_archive import TopicArchive
from archiver.find.report import FindReport
from archiver.index.columns import UNKNOWN, indexed_leaf
from archiver.index.lookup import IndexedTerm, TermLookup
from archiver.records.block_facts import BlockFacts
from archiver.records.former_columns import ColumnHistory
from archiver.records.possible import Leaf, leaves_of, may_hold
from archiver.records.table_columns import TableColumn
from archiver.records.where import Mask, Where
from archiver.records.where_syntax import ColumnIs
from archiver.storage.postings import Numbers
from catalog.errors import RegistryError
from schema_mapping.columns.ledger import LedgerState

_LOG: Final = logging.getLogger(__name__)
_FAR: Final = np.iinfo(np.int64).max


class IndexedBy(Protocol):
    @property
    def columns(self) -> Mapping[ColumnIs, TableColumn]: ...
    @property
    def key_id(self) -> int | None: ...
    @property
    def ledger(self) -> LedgerState | None: ...


@dataclass(slots=True, kw_only=True)
class IndexFacts:
    """`terms` are by condition, `mappings` of indexed columns by identity.

    Rows of `doubtful` columns may have an unknown value.
    """

    archive: TopicArchive
    report: FindReport
    terms: Mapping[Leaf, IndexedTerm]
    mappings: Mapping[str, str]
    doubtful: frozenset[str]
    _lookup: TermLookup | None = field(default=None)

    @classmethod
    def of(cls, where: Where, columns: IndexedBy, archive: TopicArchive, report: FindReport) -> Self:
        history = None if columns.ledger is None else ColumnHistory(columns.ledger)
        terms: dict[Leaf, IndexedTerm] = {}
        mappings: dict[str, str] = {}
        doubtful: set[str] = set()
        for leaf in leaves_of(where.condition):
            column = columns.columns.get(leaf) if isinstance(leaf, ColumnIs) else None
            named = indexed_leaf(leaf, columns.key_id, column, history)
            if named is not None:
                identity, mappings[identity], term = named[0], named[1], named[2]
                terms[leaf] = IndexedTerm(identity, term)
                doubtful.update([identity] if column is not None else [])
        return cls(archive=archive, report=report, terms=terms, mappings=mappings, doubtful=frozenset(doubtful))

    def look_up(self, paths: Sequence[str]) -> None:
        """Read runs that cover some of these files; none without registry or store."""
        if self.report.registry_error is not None:
            return
        try:
            state = self.archive.index_state(self.mappings, paths)
        except RegistryError as error:
            _LOG.info("%s: the registry's runs can't be used: %s", self.archive.topic, error)
            self.report.registry_error = str(error)
            return
        unknown = {IndexedTerm(column, UNKNOWN) for column in self.doubtful}
        objects = replace(self.archive.runs, meter=self.report.index_reads)
        self._lookup = TermLookup.of(state, {*self.terms.values(), *unknown}, objects)
        self.report.add(index_runs=len(state.runs), index_leaves=self._lookup.leaves)
        self.report.index_error = self._lookup.problem or self.report.index_error

    def files_with(self, leaf: Leaf, files: pa.Table) -> Mask:
        names = (*file_columns.BOUNDS["partition"], *file_columns.BOUNDS["offset"])
        boxes = [
            pc.fill_null(files[name].cast(pa.int64()), -_FAR if place % 2 == 0 else _FAR).to_numpy()
            for place, name in enumerate(names)
        ]
        return self._may(leaf, files[file_columns.PATH].to_pylist(), boxes)

    def may_hold(self, where: Where, path: str, block: BlockFacts) -> bool:
        if self._lookup is None:
            return True
        boxes = [np.array([number], np.int64) for number in block.offset_box()]
        return bool(may_hold(where.condition, lambda leaf: self._may(leaf, [path], boxes)).any())

    def _may(self, leaf: Leaf, paths: Sequence[str], boxes: Sequence[Numbers]) -> Mask:
        term = self.terms.get(leaf)
        if term is None or self._lookup is None:
            return np.ones(len(paths), np.bool_)
        unknown = IndexedTerm(term.column, UNKNOWN)
        possible = ~self._lookup.covers(term.column, paths)
        return possible | self._lookup.touch(term, boxes) | self._lookup.touch(unknown, boxes)
