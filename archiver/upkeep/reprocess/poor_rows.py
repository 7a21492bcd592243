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
        kinds = {part: _struct_of(schema, part) for part in PARTS}
        aside = aside_ids(today)
        errors = {part: _id_of(kind, names.ERR) for part, kind in kinds.items() if kind is not None}
        return cls(
            errors={part: error_id for part, error_id in errors.items() if error_id is not None},
            unknown=frozenset(identifier for kind in kinds.values() for identifier in unrecognized_ids(kind)) - aside,
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
        poor = PoorColumns.of(schema, today)
        kinds = {part: _struct_of(schema, part) for part in PARTS} if wanted.reach is not Reach.ERRORS else {}
        unknown = {part: kind and UnknownFields.of_struct(kind, poor.unknown) for part, kind in kinds.items()}
        return cls(
            wanted=wanted,
            version=today.schema_version,
            errors={part: schema.field(part).type.get_field_index(names.ERR) for part in poor.errors},
            unknown={part: fields for part, fields in unknown.items() if fields is not None},
        )

    def find(self, rows: pa.RecordBatch, kafka: pa.StructArray) -> dict[ErrorKind, Mask]:
        inside = self.wanted.rows(kafka)
        masks = {
            (part, code): where & inside
            for part, index in self.errors.items()
            for code, where in self._errors(pc.struct_field(rows.column(part), index))
        }
        for part, unknown in self.unknown.items():
            sizes = unknown.sizes(rows.column(part))
            if sizes is not None:
                masks[part, UNKNOWN_FIELDS] = (sizes > 0) & inside
        if self.wanted.reach is Reach.ALL:
            versions = kafka.field(names.SCHEMA_VERSION).to_numpy(zero_copy_only=False)
            for version in np.unique(versions[versions != self.version]).tolist():
                masks[ROW, f"schema version {int(version)}"] = (versions == version) & inside
        return {kind: where for kind, where in masks.items() if where.any()}

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
    poor = PoorColumns.of(file.reader.schema, today)
    told_by = poor.told_by(wanted.reach)
    for block in file.reader.blocks():
        counts = file.reader.set_counts(block, told_by)
        if wanted.reach is not Reach.ALL and not any(counts.get(identifier, 1) for identifier in told_by):
            continue
        kinds: Counter[ErrorKind] = Counter()
        misfits: Misfits | None = None
        for rows, kafka in file.rows(block, None, KAFKA_IDS | told_by):
            misfits = misfits or Misfits.of(rows.schema, wanted, today)
            kinds += count_kinds(misfits.find(rows, kafka))
        if kinds:
            seen.found += kinds
            seen.blocks.append(block)
    return seen


def count_kinds(found: dict[ErrorKind, Mask]) -> Counter[ErrorKind]:
    return Counter({kind: int(where.sum()) for kind, where in found.items() if where.any()})


def error_codes(errors: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring_regex(errors.cast(pa.string()), pattern=_PLACE, replacement="")


def _struct_of(schema: pa.Schema, part: str) -> pa.StructType | None:
    column = next((child for child in schema if field_id(child) == PARTS[part]), None)
    return None if column is None else column.type


def _id_of(kind: pa.StructType, name: str) -> int | None:
    match = next((child for child in kind if child.name == name), None)
    return None if match is None else field_id(match)


def _mask(column: pa.BooleanArray) -> Mask:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)
