"""Encodes rows: `__raw__` if set, else `__prefix__` and the columns in the row's form."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from schema_mapping.columns.mapped_rows import as_mapped
from schema_mapping.columns.sources import RowSources, column_names, encoded_array
from schema_mapping.errors import KernelError
from schema_mapping.json.kernel.encoder import encode_rows
from schema_mapping.json.program import JsonProgram

PROBLEMS: Final = {
    "form": "`__form__` names a form of writing that isn't known here",
    "value": "a column holds a number that JSON can't have",
}


def encode(rows: pa.StructArray, program: JsonProgram) -> pa.BinaryArray | pa.LargeBinaryArray:
    """Return the values bit for bit; large binary above 2 GiB.

    Raises KernelError if the rows have other columns, or the mapping can't have decoded a row.
    """
    if rows.type != program.arrow_type:
        rows = as_mapped(rows, program.arrow_type)
    sources = RowSources(program.root, rows)
    try:
        data, offsets = encode_rows(program.tables, sources.addresses, len(rows), guess=rows.nbytes)
    except ValueError as error:
        row, column, problem = error.args
        name = column_names(program.root).get(column)
        raise KernelError(PROBLEMS[problem], row=row, **({} if name is None else {"column": name})) from None
    return encoded_array(rows, data, offsets)
