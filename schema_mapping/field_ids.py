"""Gives field ids: from what a table's ledger remembers and a topic's schemas to the next state, mapping and schema.

Pure and deterministic; the catalog persists the state under a row lock. Rules: docs/schema-evolution.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, replace
from datetime import datetime

from pyiceberg.schema import Schema

from schema_mapping import names
from schema_mapping.columns.docs import document
from schema_mapping.columns.evolution import Change, Evolution, assigned_ids, expand, paths_of
from schema_mapping.columns.fixed import FIXED_LEAVES
from schema_mapping.columns.graph import ColumnGraph
from schema_mapping.columns.iceberg import ledger_field
from schema_mapping.columns.ledger import LedgerEntry, LedgerState, Root, SchemaVersion
from schema_mapping.columns.ledger_tree import ROOTS, Ledger
from schema_mapping.columns.options import MappingOptions
from schema_mapping.columns.returns import has_come_to_stay, heard
from schema_mapping.columns.shape import raw_shape, root_shape
from schema_mapping.formats import format_called
from schema_mapping.raw_mapping import RawMapping
from schema_mapping.row import PartitionSource, RowMapping, row_mapping_from_text, table_schema
from schema_mapping.value_format import DeclaredSchema, ValueMapping, ValueSchema

__all__ = ["Assignment", "LedgerEntry", "LedgerState", "SchemaVersion", "assign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a topic's schemas come to: the ledger after them, the rows' mapping, and the table's schema.

    `iceberg_schema` is the whole table's, whatever the version: for a fingerprint seen before it is the newest one's
    with all columns that `row` writes; `changes` is empty then, `version` and `row` are the old ones.
    """

    state: LedgerState
    row: RowMapping
    iceberg_schema: Schema
    changes: tuple[Change, ...]
    version: int
    fingerprint: str


def assign(
    state: LedgerState,
    *,
    key: DeclaredSchema | None = None,
    value: DeclaredSchema | None = None,
    options: MappingOptions | None = None,
    partition_source: PartitionSource = "nested",
    now: datetime | None = None,
) -> Assignment:
    """Assigns columns to a topic's key and value; None is a format without a schema.

    New ids start above `state.last_id` (see `LedgerState.at_least`). With `now`, a fingerprint seen before is noted as
    asked for again, and makes a new version once it has come to stay. Raises DescriptorError for a schema that can't be
    read or has more fields than a table takes.
    """
    options = options or MappingOptions()
    declared: dict[Root, DeclaredSchema | None] = {"key": key, "val": value}
    schemas = {
        root: format_called(schema.format).read(schema, state.entries, root)
        for root, schema in declared.items()
        if schema is not None
    }
    envelopes = {root: None if schema is None else schema.envelope for root, schema in declared.items()}
    fingerprint = row_fingerprint(schemas, options, partition_source, envelopes)
    seen = state.version_of(fingerprint)
    if seen is not None:
        state = state if now is None else heard(state, seen, now)
        if now is None or not has_come_to_stay(state, now):
            return _unchanged(state, seen)
    version = 1 + max((each.version for each in state.versions), default=0)
    again = frozenset[int]() if seen is None else row_mapping_from_text(seen.mapping).column_ids
    ledger = Ledger(state, version, again=again)
    kept_before = _keeps_removed(state)
    graphs = {root: schema.columns(options) for root, schema in schemas.items()}
    changes = _evolve(ledger, graphs, options, kept_before=kept_before)
    for root, schema in schemas.items():
        document(ledger.roots[root], graphs[root], schema.comments())
    entries = ledger.entries()
    if seen is not None and entries == state.entries and options.keep_removed is kept_before:
        return _unchanged(replace(state, returning=None), seen)
    row = RowMapping(
        key=_mapping(ledger, "key", schemas, options),
        value=_mapping(ledger, "val", schemas, options),
        schema_version=version,
        partition_source=partition_source,
        key_envelope=envelopes["key"],
        value_envelope=envelopes["val"],
    )
    newest = SchemaVersion(version=version, fingerprint=fingerprint, mapping=row.text)
    return Assignment(
        state=LedgerState(entries=entries, versions=(*state.versions, newest), last_id=ledger.last_id),
        row=row,
        iceberg_schema=ledger_schema(entries, row),
        changes=changes,
        version=version,
        fingerprint=fingerprint,
    )


def _unchanged(state: LedgerState, seen: SchemaVersion) -> Assignment:
    row = row_mapping_from_text(seen.mapping)
    newest = row_mapping_from_text(state.versions[-1].mapping)
    return Assignment(
        state=state,
        row=row,
        iceberg_schema=ledger_schema(state.entries, newest, written=row.column_ids),
        changes=(),
        version=seen.version,
        fingerprint=seen.fingerprint,
    )


def row_fingerprint(
    schemas: MappingOf[Root, ValueSchema],
    options: MappingOptions,
    partition_source: PartitionSource,
    envelopes: MappingOf[Root, bytes | None],
) -> str:
    """SHA-256, in hex, over the facts of both schemas, the options, and the envelopes that replay may add."""
    facts = {root: schema.fingerprint() for root, schema in schemas.items()}
    added = {root: envelope.hex() for root, envelope in envelopes.items() if envelope is not None}
    text = json.dumps([facts, options.to_json(), partition_source, *([added] if added else [])], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def ledger_schema(entries: tuple[LedgerEntry, ...], newest: RowMapping, *, written: Container[int] = ()) -> Schema:
    """The table's schema: all that the ledger keeps, under the options of the newest version, and what is `written`."""
    keep = newest.options.keep_removed
    key, val = (ledger_field(root, entries, keep_removed=keep, written=written) for root in ROOTS)
    return table_schema(key, val, newest.partition_source)


def _keeps_removed(state: LedgerState) -> bool:
    return not state.versions or row_mapping_from_text(state.versions[-1].mapping).options.keep_removed


def _evolve(
    ledger: Ledger, graphs: MappingOf[Root, ColumnGraph], options: MappingOptions, *, kept_before: bool
) -> tuple[Change, ...]:
    places = expand(ledger, graphs, options, FIXED_LEAVES)
    evolution = Evolution(ledger, keep_removed=options.keep_removed, kept_before=kept_before)
    for root in ROOTS:
        graph = graphs.get(root)
        evolution.settle(root, raw_shape() if graph is None else root_shape(graph, paths_of(places, root)))
    return evolution.changes()


def _mapping(
    ledger: Ledger, root: Root, schemas: MappingOf[Root, ValueSchema], options: MappingOptions
) -> ValueMapping:
    ids = assigned_ids(ledger, root)
    schema = schemas.get(root)
    if schema is None:
        return RawMapping(raw_id=ids.by_path()[(names.RAW_STEP,)].field_id)
    return schema.compile(ids, options, keep_raw=root == names.KEY)
