"""Encodes rows: `__raw__` if set, else `__prefix__` and the columns in canonical form."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schema_mapping.columns.arrow import IN_DICTIONARY
from schema_mapping.columns.mapped_rows import as_mapped, wrong_type
from schema_mapping.errors import KernelError
from schema_mapping.protobuf.kernel.encoder import encode_rows
from schema_mapping.protobuf.program import Program

_MOST_IN_DICTIONARIES = 16 << 20
"""The largest initial estimate for texts in dictionaries: the average says little if one text is long."""
NOT_ENCODABLE = {
    "enum": "an enum column holds a text that is neither a name of the enum nor a number",
    "json": "a column of JSON holds a text that isn't the JSON of its Protobuf type",
    "form": "`__form__` names a form of writing that isn't known here",
    "nanos": "a list of nanoseconds has more or fewer elements than its column of times",
}


def encode(rows: pa.StructArray, program: Program) -> pa.BinaryArray | pa.LargeBinaryArray:
    """Return the original values bit for bit; large binary above 2 GiB.

    Texts may be in dictionaries (`IN_DICTIONARY`) at any depth. Raises KernelError if the rows have other columns, an
    enum's text is neither a name nor a number, a JSON text isn't JSON of its type, or times and nanoseconds differ in
    number.
    """
    size = rows.nbytes
    if rows.type != program.arrow_type:
        if _has_dictionaries_only(rows.type, program.arrow_type):
            size += min(_MOST_IN_DICTIONARIES, _bytes_in_dictionaries(rows))
        else:
            rows = as_mapped(rows, program.arrow_type)
    try:
        return _encode(rows, program, size, wide=False)
    except OverflowError:
        return _encode(rows, program, size, wide=True)


def _encode(rows: pa.StructArray, program: Program, size: int, *, wide: bool) -> pa.BinaryArray | pa.LargeBinaryArray:
    _, capsule = rows.__arrow_c_array__()
    try:
        encoded = encode_rows(program.tables, capsule, guess=size, wide=wide)
    except TypeError:
        if rows.type != program.arrow_type:
            return _encode(as_mapped(rows, program.arrow_type), program, size, wide=wide)
        raise wrong_type(rows.type, program.arrow_type) from None
    except ValueError as error:
        row, number, what = error.args
        raise KernelError(NOT_ENCODABLE[what], row=row, field_number=number) from None
    kind = pa.large_binary() if wide else pa.binary()
    return pa.Array.from_buffers(kind, len(rows), [_validity(rows), encoded.offsets, encoded.data], rows.null_count)


def _has_dictionaries_only(found: pa.DataType, wanted: pa.DataType) -> bool:
    if found.num_fields == 0 or found.id != wanted.id or found.num_fields != wanted.num_fields:
        return bool(found == wanted or (found == IN_DICTIONARY and pa.types.is_string(wanted)))
    if pa.types.is_map(found):  # files name the entries in their own way
        kinds = ((found.key_type, wanted.key_type), (found.item_type, wanted.item_type))
        return all(_has_dictionaries_only(ours, theirs) for ours, theirs in kinds)
    inside = range(found.num_fields)
    return [found.field(at).name for at in inside] == [wanted.field(at).name for at in inside] and all(
        _has_dictionaries_only(found.field(at).type, wanted.field(at).type) for at in inside
    )


def _bytes_in_dictionaries(array: pa.Array) -> int:
    """Counts every use."""
    if pa.types.is_dictionary(array.type):
        return int(len(array) * array.dictionary.nbytes // max(1, len(array.dictionary)))
    if pa.types.is_struct(array.type):
        return sum(_bytes_in_dictionaries(array.field(at)) for at in range(array.type.num_fields))
    if pa.types.is_map(array.type):
        return _bytes_in_dictionaries(array.keys) + _bytes_in_dictionaries(array.items)
    return _bytes_in_dictionaries(array.values) if pa.types.is_list(array.type) else 0


def _validity(rows: pa.StructArray) -> pa.Buffer | None:
    if not rows.null_count:
        return None
    return pa.py_buffer(np.packbits(rows.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
