"""The indexed columns of a topic, and the terms of their rows.

A row with an unknown value gets the term UNKNOWN, so that searches read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, FixedType, IcebergType, IntegerType, LongType, StringType, StructType

from archiver.archive.assemble import Mappings
from archiver.config.index_section import HEADER, IndexedValue, IndexKind
from archiver.config.model import TopicConfig
from archiver.errors import ConfigError
from archiver.records.block_facts import raw_key_id
from archiver.records.column_answers import ids_to_read, unknown_rows
from archiver.records.former_columns import ColumnHistory
from archiver.records.possible import Leaf
from archiver.records.table_columns import TableColumn, table_columns
from archiver.records.where import Where
from archiver.records.where_syntax import BytesAre, ColumnIs, Constant, Header
from archiver.storage.formats import can_be_hashed, value_hashes
from archiver.storage.postings import Numbers
from archiver.storage.row_columns import column_by_id
from schema_mapping import names
from schema_mapping.columns.fixed import HEADERS_ID
from schema_mapping.columns.ledger import LedgerState

UNKNOWN: Final = -(1 << 63)
"""The term of rows with an unknown value. A value whose hash it is only makes searches read them."""

FORMAT: Final = 1
"""Part of each mapping. A change of the terms of values makes all runs stale."""

_KEY: Final = "key"
_SHOWN: Final = 3
_TYPES: Final = (StringType, BinaryType, FixedType, IntegerType, LongType)
RowTerms: TypeAlias = tuple[Numbers, Numbers]
"""Positions of rows, and a term of each. Rows may occur several times, or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedColumn:
    """The key, the headers named `header`, or `column`.

    `identity` is the same after a rename. Runs of another `mapping` are stale.
    """

    name: str
    identity: str
    mapping: str
    kind: IndexKind = "terms"
    key_id: int | None = None
    header: bytes | None = None
    column: TableColumn | None = None

    @property
    def part(self) -> frozenset[str]:
        """The part of a record that terms need: `key`, `headers` or none."""
        if self.column is not None:
            return frozenset()
        return frozenset(("headers",)) if self.header is not None else frozenset((_KEY,))

    def field_ids(self, schema: pa.Schema) -> frozenset[int]:
        if self.column is not None:
            return ids_to_read((self.column,), schema)
        return frozenset((HEADERS_ID,)) if self.header is not None else frozenset((self.key_id or 0,))

    def terms(self, rows: pa.RecordBatch, parts: Mapping[str, pa.Array], mappings: Mappings) -> Iterator[RowTerms]:
        """`parts` of the records have `part`."""
        if self.column is not None:
            yield from _terms_of_column(self.column, rows, mappings)
        elif self.header is not None:
            yield _terms_of_header(self.header, parts["headers"])
        else:
            yield _terms_of_values(parts[_KEY])


def resolve_columns(
    settings: Sequence[IndexedValue], schema: Schema, ledger: LedgerState, topic: str
) -> tuple[IndexedColumn, ...]:
    """Raise ConfigError for a missing column or type."""
    history = ColumnHistory(ledger)
    return tuple(_resolved(setting, schema, ledger, history, topic) for setting in settings)


def check_columns(config: TopicConfig, schemas: Iterable[Schema], ledger: LedgerState) -> None:
    """Raise ConfigError if a column of `index` is in none of these schemas. The first one says why.

    A change of the topic's schema is no mistake of the configuration: pass the schemas of earlier versions, too.
    """
    every = list(schemas) if config.index else []
    for setting in config.index:
        errors: list[ConfigError] = []
        for schema in every:
            try:
                resolve_columns([setting], schema, ledger, config.name)
            except ConfigError as error:
                errors.append(error)
            else:
                break
        else:
            raise errors[0]


def indexed_leaf(
    leaf: Leaf, key_id: int | None, column: TableColumn | None, history: ColumnHistory | None
) -> tuple[str, str, int] | None:
    """Return identity, mapping and term of a matching row; None if no index has it."""
    match leaf:
        case BytesAre("key", "=", value) if key_id is not None:
            return _KEY, _mapping(key_id), term_of_value(value)
        case BytesAre(Header(name), "=", value):
            return _header_identity(name), _mapping(HEADERS_ID), term_of_value(value)
        case ColumnIs(comparison="=") if column is not None and history is not None:
            constant = column.value
            if isinstance(constant, str | bytes | int) and not isinstance(constant, bool):
                return _identity(column), _column_mapping(column, history), term_of_value(constant)
    return None


def term_of_value(value: str | bytes | int) -> int:
    return int(value_hashes(pa.array([value]))[0])


def _resolved(
    setting: IndexedValue, schema: Schema, ledger: LedgerState, history: ColumnHistory, topic: str
) -> IndexedColumn:
    name = setting.column
    if name == _KEY:
        key_id = raw_key_id(schema)
        if key_id is None:
            raise _refused(name, "the table has no column of keys as they were sent", topic)
        return IndexedColumn(name=name, identity=_KEY, mapping=_mapping(key_id), kind=setting.kind, key_id=key_id)
    if name.startswith(HEADER):
        header = name.removeprefix(HEADER).encode()
        return IndexedColumn(
            name=name,
            identity=_header_identity(header),
            mapping=_mapping(HEADERS_ID),
            kind=setting.kind,
            header=header,
        )
    column = _table_column(name, schema, ledger, history, topic)
    return IndexedColumn(
        name=name,
        identity=_identity(column),
        mapping=_column_mapping(column, history),
        kind=setting.kind,
        column=column,
    )


def _table_column(name: str, schema: Schema, ledger: LedgerState, history: ColumnHistory, topic: str) -> TableColumn:
    try:
        field = schema.find_field(name)
    except ValueError:
        indexable = [path for path in schema.column_names if _is_indexable(path, schema)]
        near = get_close_matches(name, indexable, _SHOWN)
        hint = f"; there is {' and '.join(near)}" if near else ""
        raise _refused(name, f"the table has no such column{hint}", topic) from None
    kind = field.field_type
    if isinstance(kind, StructType):
        raise _refused(name, "it is a struct: name one of its columns", topic)
    if not _is_indexable(name, schema):
        raise _refused(
            name, f"only texts, bytes and whole numbers outside of lists and maps have terms: its type is {kind}", topic
        )
    if history.is_enum(field.field_id):
        raise _refused(name, "it is an enum, and rows of older schema versions may have other names", topic)
    asked = ColumnIs(tuple(name.split(".")), _any_constant(kind))
    return _with_all_former(table_columns(Where(name, asked), schema, ledger)[asked], history)


def _any_constant(kind: IcebergType) -> Constant:
    if isinstance(kind, IntegerType | LongType):
        return Constant("number", "0")
    return Constant("text", "0" * len(kind) if isinstance(kind, FixedType) else "")


def _is_indexable(path: str, schema: Schema) -> bool:
    field = schema.find_field(path)
    parts = path.split(".")
    if parts[0] not in (names.KEY, names.VAL) or any(part in names.RESERVED for part in parts):
        return False
    above = (schema.find_type(".".join(parts[:depth])) for depth in range(1, len(parts)))
    return isinstance(field.field_type, _TYPES) and all(isinstance(kind, StructType) for kind in above)


def _with_all_former(column: TableColumn, history: ColumnHistory) -> TableColumn:
    return replace(column, former=tuple(sorted(history.former(column.field_id))))


def _terms_of_column(column: TableColumn, rows: pa.RecordBatch, mappings: Mappings) -> Iterator[RowTerms]:
    values = column_by_id(rows, column.field_id)
    has_values = values is not None and can_be_hashed(values.type)
    if has_values:
        yield _terms_of_values(values)
    unknown = np.flatnonzero(unknown_rows(column, rows, mappings, has_values=has_values))
    if len(unknown):
        yield unknown, np.full(len(unknown), UNKNOWN, np.int64)


def _terms_of_header(name: bytes, headers: pa.ListArray) -> RowTerms:
    rows = pc.list_parent_indices(headers)
    entries = headers.flatten()
    chosen = pc.equal(entries.field("key"), pa.scalar(name, pa.binary()))
    values = entries.field("value").filter(chosen)
    positions, terms = _terms_of_values(values)
    return rows.filter(chosen).to_numpy()[positions].astype(np.int64), terms


def _terms_of_values(values: pa.Array) -> RowTerms:
    positions = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    return positions, value_hashes(values if len(positions) == len(values) else values.drop_null())


def _identity(column: TableColumn) -> str:
    return f"field-{column.field_id}"


def _header_identity(name: bytes) -> str:
    return f"header-{name.hex()}"


def _mapping(field_id: int) -> str:
    return f"{FORMAT}.{field_id}"


def _column_mapping(column: TableColumn, history: ColumnHistory) -> str:
    """Changes with the schema's history, which decides which rows have the value elsewhere."""
    parts = (
        FORMAT,
        column.part_id,
        column.field_id,
        column.errors,
        sorted(column.unrecognized),
        sorted(history.former(column.field_id)),
        sorted(column.messages),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _refused(name: str, problem: str, topic: str) -> ConfigError:
    return ConfigError(f"No index is possible on {name!r}: {problem}", key=f"topics.{topic}.index")
