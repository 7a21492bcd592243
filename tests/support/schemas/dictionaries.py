"""Row types with texts in dictionaries."""

from __future__ import annotations

import pyarrow as pa

from schema_mapping.columns.arrow import IN_DICTIONARY


def in_dictionaries(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(in_dictionaries(field.type)) for field in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(in_dictionaries(key.type)), item.with_type(in_dictionaries(item.type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(in_dictionaries(kind.value_type)))
    return IN_DICTIONARY if pa.types.is_string(kind) else kind
