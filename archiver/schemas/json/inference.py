"""Propose a JSON Schema by a sample of values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from archiver.errors import ConfigError
from archiver.schemas.format_settings import MOST_RAW, InferredSchema
from schema_mapping import LedgerState, assign, names
from schema_mapping.errors import DescriptorError, RowsTooLargeError
from schema_mapping.json.sampled_type import SampledType, parsed
from schema_mapping.json.schema import UNTITLED, JsonSchema, types_of
from schema_mapping.value_format import DeclaredSchema, ValueMapping

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_RESTORED: Final = "columns can't restore the bytes"
_FEW: Final = 3


def infer_json_schema(
    samples: Iterable[pa.BinaryArray], *, title: str, base: DeclaredSchema | None = None
) -> InferredSchema:
    """Propose a schema that extends `base`. Equal samples have equal schemas.

    If more than MOST_RAW values would stay raw because of numbers that no column of numbers gives back, these
    members become JSON text. Raises ConfigError if no value is JSON, or none has a type.
    """
    arrays = [array.drop_null() for array in samples]
    root, valid, refused = _sampled(arrays, base)
    schema = root.schema()
    if not valid or schema is None:
        raise ConfigError(
            "no schema can be inferred: " + (_why_not(arrays, refused) if not valid else "all values are null or empty")
        )
    counts = _kept_raw(arrays, _document(schema, title, base))
    total = sum(map(len, arrays))
    opened: list[str] = []
    while sum(counts.values()) > MOST_RAW * total:
        inexact = [(-sampled.inexact, path, sampled) for path, sampled in root.places() if sampled.inexact]
        if not inexact:
            break
        _, path, sampled = min(inexact, key=lambda item: item[:2])
        opened.append(_opened(path, sampled))
        sampled.is_open = True
        schema = root.schema()
        assert schema is not None
        counts = _kept_raw(arrays, _document(schema, title, base))
    return InferredSchema(
        text=_document(schema, title, base),
        values=total,
        raw=sum(counts.values()),
        reasons=tuple(f"{count:,} {code}" for code, count in counts.most_common()),
        remarks=(*opened, *_remarks(root)),
    )


def _sampled(arrays: Sequence[pa.BinaryArray], base: DeclaredSchema | None) -> tuple[SampledType, int, str]:
    assert isinstance(base, JsonSchema | None)
    root = SampledType() if base is None else SampledType.of(types_of(base.types))
    valid, refused = 0, ""
    for array in arrays:
        for value in array.to_pylist():
            try:
                content = parsed(value)
            except (ValueError, RecursionError) as error:
                refused = refused or str(error)
                continue
            valid += 1
            root.add(content)
    return root, valid, refused


def _why_not(arrays: Sequence[pa.BinaryArray], refused: str) -> str:
    first = next((value for array in arrays for value in array.to_pylist()), None)
    if first is None:
        return "the sample has no values"
    if first[:1] in {b"\0", b"\1"}:
        return (
            "the values begin like the envelope of a schema registry, which has their schemas: set"
            ' wire_format = "confluent"'
        )
    return f"none of the sampled values is JSON: {refused}"


def _document(schema: dict[str, object], title: str, base: DeclaredSchema | None) -> str:
    name = title if base is None else base.messages[0]
    head: dict[str, object] = {"$schema": DIALECT}
    if name != UNTITLED:
        head["title"] = name
    return json.dumps(head | schema, indent=2, ensure_ascii=False) + "\n"


def _kept_raw(arrays: Sequence[pa.BinaryArray], text: str) -> Counter[str]:
    try:
        mapping = assign(LedgerState(), value=JsonSchema.of(text)).row.value
    except DescriptorError as error:  # a name that no column can have
        raise ConfigError(f"no schema can be inferred: {error.message}", **error.context) from error
    counts = Counter[str]()
    for array in arrays:
        for raw, code in _raw_values(mapping, array):
            if raw:
                counts[_RESTORED if code is None else code.partition("@")[0]] += 1
    return counts


def _raw_values(mapping: ValueMapping, values: pa.BinaryArray) -> Iterator[tuple[bool, str | None]]:
    try:
        rows = mapping.decode(values)
    except RowsTooLargeError:
        half = len(values) // 2
        yield from _raw_values(mapping, values.slice(0, half))
        yield from _raw_values(mapping, values.slice(half))
        return
    raw, errors = rows.field(names.RAW), rows.field(names.ERR)
    yield from zip(raw.is_valid().to_pylist(), errors.to_pylist(), strict=True)


def _opened(path: str, sampled: SampledType) -> str:
    return (
        f"{path or 'the value'}: JSON text, because a column of numbers wouldn't give back {sampled.inexact:,} of"
        f" {sampled.counts['integer'] + sampled.counts['number']:,} numbers, such as {sampled.example or 'large ones'}"
    )


def _remarks(root: SampledType) -> Iterator[str]:
    untyped: list[str] = []
    for path, sampled in root.places():
        kinds = sampled.kinds
        if sampled.is_open:
            continue
        if sampled.schema() is None:
            if not any(path.startswith((f"{above}.", f"{above}[")) for above in untyped):
                untyped.append(path)
        elif sampled.schema() == {} or len(kinds) > 1:
            seen = ", ".join(f"{sampled.counts[kind]:,} {kind}" for kind in kinds)
            column = "JSON text" if "type" not in (sampled.schema() or {}) else "a column for each type"
            yield f"{path or 'the value'}: {column} ({seen})"
    for path in untyped[:_FEW]:
        yield f"{path}: no column yet, because it was always null or empty; its values are in `__unrecognized__`"
    if len(untyped) > _FEW:
        yield f"{len(untyped) - _FEW:,} more members without a column, because they were always null or empty"
