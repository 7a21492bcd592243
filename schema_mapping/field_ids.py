"""Assigns field ids (docs/schema-evolution.md).

Pure and deterministic; the catalog serializes calls.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Final

from pyiceberg.schema import Schema

from schema_mapping import names
from schema_mapping.columns.docs import document
from schema_mapping.columns.evolution import Change, Evolution, expand, live_ids, paths_of
from schema_mapping.columns.fixed import FIXED_LEAVES
from schema_mapping.columns.graph import ColumnGraph
from schema_mapping.columns.iceberg import ledger_field
from schema_mapping.columns.ledger import LedgerEntry, LedgerState, Root, SchemaVersion, has_returned, note_request
from schema_mapping.columns.ledger_tree import ROOTS, LedgerTree
from schema_mapping.columns.options import MappingOptions
from schema_mapping.columns.shape import raw_shape, root_shape
from schema_mapping.formats import format_called
from schema_mapping.raw_mapping import RawMapping
from schema_mapping.row import PartitionSource, RowMapping, row_mapping_from_text, table_schema
from schema_mapping.value_format import DeclaredSchema, ValueMapping, ValueSchema

_KEPT: Final = 64
"""How many schemas are kept. A large one takes a megabyte."""

__all__ = ["Assignment", "LedgerEntry", "LedgerState", "SchemaVersion", "assign", "assignment_in_force"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """`is_new`: this call made `version`.

    A known fingerprint has its old `version` and `row`; `iceberg_schema` is the newest version's with all columns of
    `row`.
    """

    state: LedgerState
    row: RowMapping
    iceberg_schema: Schema
    changes: tuple[Change, ...]
    version: int
    fingerprint: str
    is_new: bool = False


def assign(
    state: LedgerState,
    *,
    key: DeclaredSchema | None = None,
    value: DeclaredSchema | None = None,
    options: MappingOptions | None = None,
    partition_source: PartitionSource = "nested",
    now: datetime | None = None,
) -> Assignment:
    """Assign columns to key and value (None: no schema), with ids above `state.last_id`.

    With `now`, requests for known fingerprints are counted. Raises DescriptorError for an unreadable or too large
    schema.
    """
    options = (options or MappingOptions()).of_table(version.mapping for version in reversed(state.versions))
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
        state = state if now is None else note_request(state, seen, now)
        if now is None or not has_returned(state, now):
            return _unchanged(state, seen)
    version = 1 + state.newest
    again = frozenset[int]() if seen is None else row_mapping_from_text(seen.mapping).column_ids
    ledger = LedgerTree(state, version, again=again)
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
        is_new=True,
    )


def assignment_in_force(state: LedgerState) -> Assignment:
    assert state.in_force is not None
    return _unchanged(state, state.in_force)


def _unchanged(state: LedgerState, seen: SchemaVersion) -> Assignment:
    return Assignment(
        state=state,
        row=row_mapping_from_text(seen.mapping),
        iceberg_schema=_schema_seen(state.entries, state.versions[-1].mapping, seen.mapping),
        changes=(),
        version=seen.version,
        fingerprint=seen.fingerprint,
    )


@lru_cache(maxsize=_KEPT)
def _schema_seen(entries: tuple[LedgerEntry, ...], newest: str, seen: str) -> Schema:
    written = row_mapping_from_text(seen).column_ids
    return ledger_schema(entries, row_mapping_from_text(newest), written=written)


def row_fingerprint(
    schemas: Mapping[Root, ValueSchema],
    options: MappingOptions,
    partition_source: PartitionSource,
    envelopes: Mapping[Root, bytes | None],
) -> str:
    """SHA-256 of both schemas, options, and `envelopes` that a replay may add."""
    facts = {root: schema.fingerprint() for root, schema in schemas.items()}
    added = {root: envelope.hex() for root, envelope in envelopes.items() if envelope is not None}
    text = json.dumps([facts, options.to_json(), partition_source, *([added] if added else [])], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def ledger_schema(entries: tuple[LedgerEntry, ...], newest: RowMapping, *, written: Container[int] = ()) -> Schema:
    """All columns by the newest options, and `written` ones."""
    keep = newest.options.keep_removed
    key, val = (ledger_field(root, entries, keep_removed=keep, written=written) for root in ROOTS)
    return table_schema(key, val, newest.partition_source)


def _keeps_removed(state: LedgerState) -> bool:
    return not state.versions or row_mapping_from_text(state.versions[-1].mapping).options.keep_removed


def _evolve(
    ledger: LedgerTree, graphs: Mapping[Root, ColumnGraph], options: MappingOptions, *, kept_before: bool
) -> tuple[Change, ...]:
    places = expand(ledger, graphs, options, FIXED_LEAVES)
    evolution = Evolution(ledger, keep_removed=options.keep_removed, kept_before=kept_before)
    for root in ROOTS:
        graph = graphs.get(root)
        evolution.settle(root, raw_shape() if graph is None else root_shape(graph, paths_of(places, root)))
    return evolution.changes()


def _mapping(
    ledger: LedgerTree, root: Root, schemas: Mapping[Root, ValueSchema], options: MappingOptions
) -> ValueMapping:
    ids = live_ids(ledger, root)
    schema = schemas.get(root)
    if schema is None:
        return RawMapping(raw_id=ids.by_path()[(names.RAW_STEP,)].field_id)
    return schema.compile(ids, options, keep_raw=root == names.KEY)
