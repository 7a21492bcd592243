"""Find the rows of a file with the `__err__` codes that are asked for, without reading their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive import file_columns as columns
from archiver.archive.open_file import OpenFile
from archiver.archive.records import KAFKA_IDS
from archiver.archive.table_files import TableFile, TableFiles
from archiver.storage.row_columns import column_by_id, field_id
from archiver.storage.segment import Block
from schema_mapping import names
from schema_mapping.columns.fixed import KEY_ID, VAL_ID

Mask: TypeAlias = npt.NDArray[np.bool_]
ErrorKind: TypeAlias = tuple[str, str]
"""The part with the error, `key` or `val`, and its code without the byte offset."""

PARTS: Final = {names.KEY: KEY_ID, names.VAL: VAL_ID}
_PLACE: Final = "@.*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFilter:
    """The errors that are asked for. No `codes` or `partitions` means all. Offsets are half open."""

    codes: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    start_offset: int = 0
    end_offset: int = 2**63 - 1

    def candidates(self, files: TableFiles, error_ids: frozenset[int]) -> Iterator[TableFile]:
        """The files that may have such rows, by their manifests. `error_ids` are the `__err__` columns."""
        held = files.columns
        rows, lows, highs = held[columns.ROWS], held[columns.LOW_OFFSET], held[columns.HIGH_OFFSET]
        kept = ~_is_true(pc.or_(pc.less(highs, self.start_offset), pc.greater_equal(lows, self.end_offset)))
        if self.partitions:
            kept &= self._has_partition(held[columns.LOW_PARTITION], held[columns.HIGH_PARTITION])
        without = np.ones(len(files), np.bool_)
        for identifier in error_ids:
            name = columns.nulls_of(identifier)
            without &= _is_true(pc.equal(held[name], rows)) if name in held.column_names else False
        return files.pick(np.flatnonzero(kept & ~without))

    def _has_partition(self, lows: pa.ChunkedArray, highs: pa.ChunkedArray) -> Mask:
        found = np.zeros(len(lows), np.bool_)
        for one in self.partitions:
            found |= ~_is_true(pc.or_(pc.greater(lows, one), pc.less(highs, one)))
        return found

    def rows(self, kafka: pa.StructArray) -> Mask:
        """The rows with the partitions and offsets that are asked for."""
        offsets = kafka.field(names.OFFSET).to_numpy()
        inside: Mask = (offsets >= self.start_offset) & (offsets < self.end_offset)
        if self.partitions:
            inside &= np.isin(kafka.field(names.PARTITION).to_numpy(), sorted(self.partitions))
        return inside

    def errors(self, codes: pa.StringArray) -> Mask:
        """The rows with a code that is asked for. Null is no code."""
        if not self.codes:
            return _mask(codes.is_valid())
        return _mask(pc.fill_null(pc.is_in(codes, value_set=pa.array(sorted(self.codes))), fill_value=False))


@dataclass(slots=True, kw_only=True)
class Survey:
    """The errors of a file that are asked for, the blocks that have any, and the schema versions of its rows."""

    found: Counter[ErrorKind] = field(default_factory=Counter)
    blocks: list[Block] = field(default_factory=list)
    versions: set[int] = field(default_factory=set)


def survey(file: OpenFile, wanted: ErrorFilter) -> Survey:
    """Read a file's `__err__` columns."""
    seen = Survey()
    ids = error_ids(file.reader.schema)
    for block in file.reader.blocks():
        here: Counter[ErrorKind] = Counter()
        for rows, kafka in file.rows(block, None, KAFKA_IDS | set(ids.values())):
            inside = wanted.rows(kafka)
            for part, identifier in ids.items():
                codes = error_codes(column_by_id(rows, identifier))
                here += count_codes(part, codes, wanted.errors(codes) & inside)
            seen.versions.update(pc.unique(kafka.field(names.SCHEMA_VERSION)).drop_null().to_pylist())
        if here:
            seen.found += here
            seen.blocks.append(block)
    return seen


def error_ids(schema: pa.Schema) -> dict[str, int]:
    """The ids of a file's `__err__` columns, by part."""
    found = {}
    for part, identifier in PARTS.items():
        column = next((each for each in schema if field_id(each) == identifier), None)
        error = None if column is None else next((each for each in column.type if each.name == names.ERR), None)
        known = None if error is None else field_id(error)
        if known is not None:
            found[part] = known
    return found


def error_codes(errors: pa.StringArray) -> pa.StringArray:
    """The `__err__` codes without their byte offsets."""
    return pc.replace_substring_regex(errors.cast(pa.string()), pattern=_PLACE, replacement="")


def count_codes(part: str, codes: pa.StringArray, chosen: Mask) -> Counter[ErrorKind]:
    """How often each code occurs in the chosen rows."""
    counted = pc.value_counts(codes.filter(pa.array(chosen)))
    return Counter({(part, str(each["values"])): int(each["counts"]) for each in counted.to_pylist()})


def _is_true(answer: pa.ChunkedArray) -> Mask:
    return np.asarray(pc.fill_null(answer, fill_value=False).to_numpy(), np.bool_)


def _mask(column: pa.BooleanArray) -> Mask:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)
