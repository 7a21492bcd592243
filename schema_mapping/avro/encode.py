"""Encodes rows: `__raw__` if set, else `__prefix__` and the columns by the row's writer."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from schema_mapping.avro.kernel.encoder import encode_rows
from schema_mapping.avro.program import WriterPrograms
from schema_mapping.columns.mapped_rows import as_mapped
from schema_mapping.columns.sources import RowSources, column_names, encoded_array
from schema_mapping.errors import KernelError

PROBLEMS: Final = {
    "null": "a column is null that the schema of the row's writer has a value for",
    "enum": "an enum column holds a text that isn't one of the enum's symbols",
    "form": "`__form__` names a form of writing, or a writer, that isn't known here",
    "branch": "a row has none of the branches of a union",
    "value": "a column holds a value that the type of the row's writer can't have",
}


def encode(rows: pa.StructArray, programs: WriterPrograms) -> pa.BinaryArray | pa.LargeBinaryArray:
    """Return the values bit for bit; large binary above 2 GiB.

    Raises KernelError if the rows have other columns, or the mapping can't have decoded a row.
    """
    if rows.type != programs.arrow_type:
        rows = as_mapped(rows, programs.arrow_type)
    sources = RowSources(programs.root, rows)
    try:
        data, offsets = encode_rows(programs.tables, sources.addresses, len(rows), guess=rows.nbytes)
    except ValueError as error:
        row, column, problem = error.args
        name = column_names(programs.root).get(column)
        raise KernelError(PROBLEMS[problem], row=row, **({} if name is None else {"column": name})) from None
    return encoded_array(rows, data, offsets)
