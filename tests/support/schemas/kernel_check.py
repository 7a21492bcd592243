"""Properties of the kernel, judged by upb."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from schema_mapping import MappingOptions, compile_mapping
from schema_mapping.protobuf.decode import decode
from schema_mapping.protobuf.field_kinds import WireKind
from schema_mapping.protobuf.mapped_messages import MappedField, MappedMessage
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.dictionaries import in_dictionaries
from tests.support.schemas.upb_judge import columns_in, columns_of, parse

TOGETHER = 9  # rows with enough alike around them to be written as a batch
NATIVE = MappingOptions(well_known_types="native", uint64="decimal")


def check_values(
    descriptor: Descriptor,
    values: Sequence[bytes | None],
    *,
    options: MappingOptions | None = None,
    mapping: MessageMapping | None = None,
) -> None:
    """`mapping` may have excluded fields."""
    mapping = mapping or compile_mapping(descriptor, options=options)
    rows = mapping.decode(pa.array(values, pa.binary()))
    rows.validate(full=True)
    assert rows.type.equals(mapping.arrow_type, check_metadata=True)
    _check_chunks(mapping, values, rows)
    assert mapping.encode(rows).to_pylist() == list(values)
    half = len(values) // 2
    assert mapping.encode(rows.slice(half)).to_pylist() == list(values[half:])
    without_raw = _without_raw(mapping, rows)
    repeated = rows.take(np.repeat(np.arange(len(rows)), TOGETHER))
    together = _without_raw(mapping, repeated)
    assert together == [plain for plain in without_raw for _ in range(TOGETHER)]
    assert _without_raw(mapping, repeated, texts_in_dictionaries=True) == together
    assert _without_raw(mapping, rows.slice(half), texts_in_dictionaries=True) == without_raw[half:]
    for value, row, plain in zip(values, rows.to_pylist(), without_raw, strict=True):
        _check_row(mapping, descriptor, value, row, plain)


def _check_chunks(mapping: MessageMapping, values: Sequence[bytes | None], rows: pa.StructArray) -> None:
    # By their text: a NaN doesn't equal itself.
    for chunk_rows in (1, 3):
        again = decode(pa.array(values, pa.binary()), replace(mapping.program, chunk_rows=chunk_rows))
        again.validate(full=True)
        assert str(again.to_pylist()) == str(rows.to_pylist())


def _without_raw(mapping: MessageMapping, rows: pa.StructArray, *, texts_in_dictionaries: bool = False) -> Any:
    # What the columns alone say.
    children = [
        pa.nulls(len(rows), field.type) if field.name == "__raw__" else rows.field(i)
        for i, field in enumerate(rows.type)
    ]
    plain = pa.StructArray.from_arrays(children, fields=list(rows.type), mask=rows.is_null())
    if texts_in_dictionaries:
        plain = plain.cast(in_dictionaries(plain.type))
    return mapping.encode(plain).to_pylist()


def _check_row(
    mapping: MessageMapping,
    descriptor: Descriptor,
    value: bytes | None,
    row: dict[str, Any] | None,
    plain: bytes | None,
) -> None:
    if value is None:
        assert row is None
        return
    assert row is not None
    parsed = parse(descriptor, value)
    if parsed is None:
        assert row["__err__"] is not None, f"upb refuses {value!r}"
        assert row["__raw__"] == value
        assert {name for name, cell in row.items() if cell is not None} == {"__raw__", "__err__"}
        return
    if row["__err__"] is not None and names_field_zero(value, row["__err__"]):
        # Illegal, and refused by upb, but in 7.36 not yet inside unknown groups and empty messages.
        return
    assert row["__err__"] is None, f"upb takes {value!r}"
    assert columns_in(row, mapping.root, parsed) == columns_of(parsed, mapping.root), value
    if row["__raw__"] is None:
        assert plain == value
    else:
        assert row["__raw__"] == value
        needed = plain != value or _has_odd_nan(mapping.root) or _has_excluded(mapping)
        assert needed, f"{value!r} needn't be kept raw"


def names_field_zero(value: bytes, err: str) -> bool:
    code, _, offset = err.partition("@")
    return code == "bad_tag" and value[int(offset)] & 0x78 == 0


def check_upb_is_canonical(
    descriptor: Descriptor,
    values: Sequence[bytes | None],
    *,
    options: MappingOptions | None = None,
    mapping: MessageMapping | None = None,
) -> None:
    """upb's output is never raw, except NaNs, texts and well-known types without a column."""
    mapping = mapping or compile_mapping(descriptor, options=options)
    if _has_odd_nan(mapping.root) or _has_loose_text(mapping.root) or _has_native(mapping.root):
        return
    parsed = [message for value in values if value is not None and (message := parse(descriptor, value)) is not None]
    for deterministic in (False, True):
        written = [message.SerializePartialToString(deterministic=deterministic) for message in parsed]
        rows = mapping.decode(pa.array(written, pa.binary()))
        for value, row in zip(written, rows.to_pylist(), strict=True):
            if row["__err__"] is None or not names_field_zero(value, row["__err__"]):
                assert row["__raw__"] is None, f"{value!r} needn't be kept raw"
                assert row["__err__"] is None, f"upb writes {value!r}"


def _has_excluded(mapping: MessageMapping) -> bool:
    return any(kind.excluded for kind in mapping.graph.types.values())


def _has_odd_nan(mapped: MappedMessage) -> bool:
    floats = (WireKind.DOUBLE, WireKind.FLOAT)
    return any((field.native.wrapped if field.native else field.kind) in floats for field in _leaves(mapped))


def _has_native(mapped: MappedMessage) -> bool:
    return any(field.native is not None for field in _leaves(mapped))


def _has_loose_text(mapped: MappedMessage) -> bool:
    return any(field.kind is WireKind.STRING and not field.validate_utf8 for field in _leaves(mapped))


def _leaves(mapped: MappedMessage) -> list[MappedField]:
    result: list[MappedField] = []
    for field in mapped.fields:
        for error in (field, field.key, field.value):
            if error is not None:
                result.append(error)
                result.extend(_leaves(error.message) if error.message is not None else ())
    return result
