"""Arrow types of a message (docs/type-mapping.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from schema_mapping import names
from schema_mapping.columns.arrow import arrow_field, scalar_arrow_type
from schema_mapping.protobuf.field_kinds import Cardinality
from schema_mapping.protobuf.mapped_messages import MappedField, MappedMessage, NanosColumn, RootIds
from schema_mapping.protobuf.message_columns import column_type


def root_type(message: MappedMessage, ids: RootIds) -> pa.StructType:
    """Fields, then `__prefix__`, `__raw__`, `__err__`, `__form__` and `__unrecognized__`."""
    specials = (
        arrow_field(names.PREFIX, pa.binary(), ids.prefix),
        arrow_field(names.RAW, pa.binary(), ids.raw),
        arrow_field(names.ERR, pa.string(), ids.err),
        arrow_field(names.FORM, pa.string(), ids.form),
    )
    return _struct(message, specials)


def _struct(message: MappedMessage, specials: Iterable[pa.Field] = ()) -> pa.StructType:
    fields = (column for field in message.fields for column in columns(field))
    return pa.struct([*fields, *specials, arrow_field(names.UNRECOGNIZED, pa.binary(), message.unrecognized_id)])


def columns(field: MappedField) -> Iterator[pa.Field]:
    """Includes the nanoseconds, if they have a column."""
    yield arrow_field(field.name, _type(field), field.field_id)
    if field.nanos is not None:
        yield arrow_field(field.nanos.name, _nanos_type(field.nanos), field.nanos.field_id)


def _nanos_type(nanos: NanosColumn) -> pa.DataType:
    if nanos.element_id is None:
        return pa.int32()
    return pa.list_(arrow_field(names.ELEMENT_NAME, pa.int32(), nanos.element_id, nullable=False))


def _type(field: MappedField) -> pa.DataType:
    match field.cardinality:
        case Cardinality.SINGULAR:
            return _value_type(field)
        case Cardinality.REPEATED:
            assert field.element_id is not None
            return pa.list_(arrow_field(names.ELEMENT_NAME, _value_type(field), field.element_id, nullable=False))
        case Cardinality.MAP:
            assert field.key is not None
            assert field.value is not None
            key = arrow_field(names.MAP_KEY_NAME, _value_type(field.key), field.key.field_id, nullable=False)
            return pa.map_(key, arrow_field(names.MAP_VALUE_NAME, _value_type(field.value), field.value.field_id))


def _value_type(field: MappedField) -> pa.DataType:
    if field.message is not None:
        return _struct(field.message)
    if field.is_cut:
        assert field.unrecognized_id is not None
        return pa.struct([arrow_field(names.UNRECOGNIZED, pa.binary(), field.unrecognized_id)])
    scalar = scalar_arrow_type(column_type(field))
    assert scalar is not None
    return scalar
