"""Rows back to values: `__raw__` where it is set, else `__prefix__` and the columns in canonical form."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schema_mapping.errors import KernelError
from schema_mapping.kernel.encoder import encode_rows
from schema_mapping.program import Program

NOT_ENCODABLE = {
    "enum": "an enum column holds a text that is neither a name of the enum nor a number",
    "json": "a column of JSON holds a text that isn't the JSON of its Protobuf type",
    "form": "`__form__` names a form of writing that isn't known here",
}


def encode(rows: pa.StructArray, program: Program) -> pa.BinaryArray | pa.LargeBinaryArray:
    """The values that `rows` were decoded from, bit for bit; a null row is a null value.

    Large binary where the values together pass 2 GiB. Raises KernelError when the rows haven't the mapping's columns,
    or an enum column holds a text that is neither one of its names nor a number, or a column of JSON none.
    """
    if rows.type != program.arrow_type:
        rows = _as_mapped(rows, program.arrow_type)
    size = rows.nbytes
    try:
        return _encode(rows, program, size, wide=False)
    except OverflowError:
        return _encode(rows, program, size, wide=True)


def _encode(rows: pa.StructArray, program: Program, size: int, *, wide: bool) -> pa.BinaryArray | pa.LargeBinaryArray:
    _, capsule = rows.__arrow_c_array__()
    try:
        encoded = encode_rows(program.tables, capsule, guess=size, wide=wide)
    except TypeError:
        raise _wrong_type(rows.type, program.arrow_type) from None
    except ValueError as error:
        row, number, what = error.args
        raise KernelError(NOT_ENCODABLE[what], row=row, field_number=number) from None
    kind = pa.large_binary() if wide else pa.binary()
    return pa.Array.from_buffers(kind, len(rows), [_validity(rows), encoded.offsets, encoded.data], rows.null_count)


def _validity(rows: pa.StructArray) -> pa.Buffer | None:
    if not rows.null_count:
        return None
    return pa.py_buffer(np.packbits(rows.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))


def _as_mapped(rows: pa.StructArray, wanted: pa.StructType) -> pa.StructArray:
    # Readers differ in large strings, dictionaries and nullability; names and order are the mapping's.
    if not pa.types.is_struct(rows.type) or [field.name for field in rows.type] != [field.name for field in wanted]:
        raise _wrong_type(rows.type, wanted)
    try:
        return rows.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise _wrong_type(rows.type, wanted) from error


def _wrong_type(found: pa.DataType, wanted: pa.DataType) -> KernelError:
    return KernelError("rows to encode don't have the mapping's type", found=str(found), wanted=str(wanted))
