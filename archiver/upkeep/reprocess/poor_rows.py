"""Find rows whose columns could be richer, without reading their values.

Undecoded, with unknown fields, or of an older schema version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.open_file import OpenFile
from archiver.archive.records import KAFKA_IDS
from archiver.files.recognition import UnknownFields
from archiver.storage.row_columns import field_id
from archiver.storage.segment import Block
from archiver.upkeep.reprocess.row_filter import PARTS, Mask, Reach, RowFilter, aside_ids, unrecognized_ids
from schema_mapping import names
from schema_mapping.row import RowMapping

ErrorKind: TypeAlias = tuple[str, str]
"""What is poor: the part, `key` or `val`, with its error's code without the byte offset, or with `UNKNOWN_FIELDS`.

With `Reach.ALL` also `row` and its schema version.
"""

UNKNOWN_FIELDS: Final = "unknown fields"
ROW: Final = "row"
_PLACE: Final = "@.*"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoorColumns:
    """Columns that show poor rows, by part. `unknown` omits columns filled on purpose."""

    errors: dict[str, int]
    unknown: frozenset[int]

    @classmethod
    def of(cls, schema: pa.Schema, today: RowMapping) -> PoorColumns:
        held = {part: _struct_of(schema, part) for part in PARTS}
        aside = aside_ids(today)
        errors = {part: _id_of(kind, names.ERR) for part, kind in held.items() if kind is not None}
        return cls(
            errors={part: known for part, known in errors.items() if known is not None},
            unknown=frozenset(each for kind in held.values() for each in unrecognized_ids(kind)) - aside,
        )

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(self.errors.values()) | self.unknown

    def told_by(self, reach: Reach) -> frozenset[int]:
        return frozenset(self.errors.values()) if reach is Reach.ERRORS else self.ids


@dataclass(frozen=True, slots=True)
class Misfits:
    wanted: RowFilter
    version: int
    errors: dict[str, int]
    unknown: dict[str, UnknownFields]

    @classmethod
    def of(cls, schema: pa.Schema, wanted: RowFilter, today: RowMapping) -> Misfits:
        """`schema` may lack columns that aren't read."""
        held = PoorColumns.of(schema, today)
        kinds = {part: _struct_of(schema, part) for part in PARTS} if wanted.reach is not Reach.ERRORS else {}
        unknown = {part: kind and UnknownFields.of_struct(kind, held.unknown) for part, kind in kinds.items()}
        return cls(
            wanted=wanted,
            version=today.schema_version,
            errors={part: schema.field(part).type.get_field_index(names.ERR) for part in held.errors},
            unknown={part: one for part, one in unknown.items() if one is not None},
        )

    def find(self, rows: pa.RecordBatch, kafka: pa.StructArray) -> dict[ErrorKind, Mask]:
        inside = self.wanted.rows(kafka)
        found = {
            (part, code): where & inside
            for part, index in self.errors.items()
            for code, where in self._errors(pc.struct_field(rows.column(part), index))
        }
        for part, unknown in self.unknown.items():
            sizes = unknown.sizes(rows.column(part))
            if sizes is not None:
                found[part, UNKNOWN_FIELDS] = (sizes > 0) & inside
        if self.wanted.reach is Reach.ALL:
            versions = kafka.field(names.SCHEMA_VERSION).to_numpy(zero_copy_only=False)
            for version in np.unique(versions[versions != self.version]).tolist():
                found[ROW, f"schema version {int(version)}"] = (versions == version) & inside
        return {kind: where for kind, where in found.items() if where.any()}

    def _errors(self, errors: pa.StringArray) -> Iterator[tuple[str, Mask]]:
        if errors.null_count == len(errors):
            return
        codes = error_codes(errors)
        asked = self.wanted.errors(codes)
        for code in pc.unique(codes).drop_null().to_pylist():
            yield str(code), asked & _mask(pc.fill_null(pc.equal(codes, code), fill_value=False))


@dataclass(slots=True, kw_only=True)
class Survey:
    found: Counter[ErrorKind] = field(default_factory=Counter)
    blocks: list[Block] = field(default_factory=list)


def survey(file: OpenFile, wanted: RowFilter, today: RowMapping) -> Survey:
    seen = Survey()
    held = PoorColumns.of(file.reader.schema, today)
    told_by = held.told_by(wanted.reach)
    for block in file.reader.blocks():
        counts = file.reader.set_counts(block, told_by)
        if wanted.reach is not Reach.ALL and not any(counts.get(each, 1) for each in told_by):
            continue
        here: Counter[ErrorKind] = Counter()
        misfits: Misfits | None = None
        for rows, kafka in file.rows(block, None, KAFKA_IDS | told_by):
            misfits = misfits or Misfits.of(rows.schema, wanted, today)
            here += count_kinds(misfits.find(rows, kafka))
        if here:
            seen.found += here
            seen.blocks.append(block)
    return seen


def count_kinds(found: dict[ErrorKind, Mask]) -> Counter[ErrorKind]:
    return Counter({kind: int(where.sum()) for kind, where in found.items() if where.any()})


def error_codes(errors: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring_regex(errors.cast(pa.string()), pattern=_PLACE, replacement="")


def _struct_of(schema: pa.Schema, part: str) -> pa.StructType | None:
    column = next((each for each in schema if field_id(each) == PARTS[part]), None)
    return None if column is None else column.type


def _id_of(kind: pa.StructType, name: str) -> int | None:
    found = next((each for each in kind if each.name == name), None)
    return None if found is None else field_id(found)


def _mask(column: pa.BooleanArray) -> Mask:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)
