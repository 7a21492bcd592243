"""Archives written values and says how they are kept. All bytes must come back."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from schema_mapping import LedgerState, assign
from schema_mapping.avro.schema import AvroSchema
from schema_mapping.json.schema import JsonSchema
from schema_mapping.value_format import ValueMapping
from tests.writers.cases import Case, Written


class RawShare(NamedTuple):
    """Of the written `values`, how many are kept raw; `refused` by the library itself."""

    values: int
    raw: int
    refused: int
    forms: int

    def __str__(self) -> str:
        return f"kept raw {self.raw} of {self.values}, {self.forms} with a form, {self.refused} refused by the library"


@lru_cache(maxsize=512)
def mapping_for(name: str, schema: str) -> ValueMapping:
    declared = AvroSchema.of(schema) if name == "avro" else JsonSchema.of(schema)
    mapping = assign(LedgerState(), value=declared).row.value
    assert mapping is not None
    return mapping


def raw_share(name: str, cases: list[Case], written: Written) -> RawShare:
    """Decode and encode what a writer wrote, case by case."""
    total = RawShare(0, 0, 0, 0)
    for case, answers in zip(cases, written, strict=True):
        values = [value for value in answers if value is not None]
        mapping = mapping_for(name, case.schema)
        rows = mapping.decode(pa.array(values, pa.binary()))
        rows.validate(full=True)
        assert mapping.encode(rows).to_pylist() == values
        assert rows.field("__err__").null_count == len(values), (case.schema, rows.field("__err__").drop_null())
        raw, forms = (len(values) - rows.field(column).null_count for column in ("__raw__", "__form__"))
        share = (len(values), raw, len(answers) - len(values), forms)
        total = RawShare(*(before + more for before, more in zip(total, share, strict=True)))
    return total
