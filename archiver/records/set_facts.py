"""Whether a condition can hold in a file, by the sets of all its values."""

from __future__ import annotations

from archiver.records.possible import Leaf
from archiver.records.table_columns import TableColumn
from archiver.records.where import COMPARE_VALUES
from archiver.records.where_syntax import BytesAre, Exists, Header, NullTest
from archiver.storage.value_sets import Values, ValueSets, is_listed_value
from schema_mapping.columns.fixed import HEADER_KEY_ID, HEADER_VALUE_ID, RAW_HEADER_KEY_ID


def is_in_sets(leaf: Leaf, key_id: int | None) -> bool:
    """Whether to read sets for a condition on keys or headers."""
    match leaf:
        case BytesAre("key"):
            return key_id is not None
        case BytesAre(Header()) | NullTest(Header()) | Exists(Header()):
            return True
        case _:
            return False


def may_hold_by_sets(leaf: Leaf, sets: ValueSets, key_id: int | None) -> bool:
    """`key_id` is None if keys aren't as archived."""
    match leaf:
        case BytesAre("key", comparison, value) if key_id is not None:
            return _may_match(sets.values(key_id), comparison, value)
        case BytesAre(Header(name), comparison, value):
            return _has_header(sets, name) and _may_match(sets.values(HEADER_VALUE_ID), comparison, value)
        case NullTest(Header(name)) | Exists(Header(name)):
            return _has_header(sets, name)
        case _:
            return True


def may_match_by_sets(column: TableColumn, sets: ValueSets) -> bool:
    """Only if no other column has the field's values."""
    value = column.value
    if not is_listed_value(value):
        return True
    return _may_match(
        sets.values(column.field_id), column.comparison, value.encode() if isinstance(value, str) else value
    )


def _has_header(sets: ValueSets, name: bytes) -> bool:
    """Names that aren't UTF-8 are in a separate column."""
    return sets.may_have(HEADER_KEY_ID, name) or sets.may_have(RAW_HEADER_KEY_ID, name)


def _may_match(values: Values | None, comparison: str, value: int | bytes) -> bool:
    """Values of another type may mean anything."""
    if values is None or (comparison == "=" and value in values):
        return True
    matches, kind = COMPARE_VALUES[comparison], type(value)
    return any(type(it) is not kind or matches(it, value) for it in values)
