"""Translates records to rows, by whole columns.

Undecodable payloads go to `__err__` and `__raw__`, unless the topic halts. Times outside the years 1 to 9999 stay ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.errors import ParseHalted, SchemaRegistryError, UnrecognizedHalted
from archiver.files.recognition import UNAPPROVED_SCHEMA, Recognizer
from archiver.files.records import Int64Array, Records, as_seen
from archiver.files.unapproved import UnapprovedValues, WaitingMapping
from archiver.schemas import EnvelopeReader
from archiver.schemas.decode import decode_in_parts, decode_values
from archiver.storage.row_columns import NO_TIMESTAMP
from catalog.model import SchemaNumber
from schema_mapping import names
from schema_mapping.columns.fixed import HEADER_TYPE, HEADERS_FIELD, KAFKA_FIELD, TIMESTAMP
from schema_mapping.row import RowMapping
from schema_mapping.value_format import ValueMapping

YEAR_1_MS: Final = -62_135_596_800_000
YEAR_9999_END_MS: Final = 253_402_300_799_999
MICROS_PER_MS: Final = 1_000
Flags: TypeAlias = npt.NDArray[np.bool_]
_TAKEN_OVER: Final = (
    names.OFFSET,
    names.BATCH_START,
    names.BATCH_END,
    names.TIMESTAMP_TYPE,
    names.LEADER_EPOCH,
    names.PRODUCER_ID,
    names.PRODUCER_EPOCH,
    names.BASE_SEQUENCE,
    names.ATTRIBUTES,
)


@dataclass(frozen=True, slots=True)
class TranslatedRows:
    rows: pa.RecordBatch
    records: pa.RecordBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeReaders:
    key: EnvelopeReader | None = None
    value: EnvelopeReader | None = None


NO_ENVELOPES: Final = EnvelopeReaders()


class Translator:
    """Values that fit only the unapproved mapping `waiting` are kept raw and never halt."""

    def __init__(
        self,
        row: RowMapping,
        *,
        topic: str,
        partition: int,
        on_parse_error: Literal["pass_through", "halt"],
        on_unrecognized: Literal["warn", "halt", "ignore"] = "warn",
        envelopes: EnvelopeReaders = NO_ENVELOPES,
        waiting: WaitingMapping | None = None,
    ) -> None:
        self.schema: pa.Schema = row.arrow_schema
        self._row = row
        self._topic = topic
        self._partition = partition
        self._envelopes = envelopes
        self._halts = on_parse_error == "halt"
        self._halts_on_unknown = on_unrecognized == "halt"
        self.recognizer = Recognizer(row)
        self._unapproved = None if waiting is None else UnapprovedValues(row, waiting)
        self.schema_ids: dict[str, set[SchemaNumber]] = {"key": set(), "value": set()}

    def translate(self, records: Records) -> list[TranslatedRows]:
        """Return rows in order, in several batches if columns would exceed 2 GiB.

        Raises ParseHalted, UnrecognizedHalted and SchemaRegistryError, with the `offset`.
        """
        return [
            TranslatedRows(rows, as_seen(part, partition=self._partition))
            for part, rows in decode_in_parts(records.columns, self._rows)
        ]

    def _rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        key = self._decode("key", self._row.key, records, self._envelopes.key)
        value = self._decode("value", self._row.value, records, self._envelopes.value)
        if self._halts:
            self._refuse_errors(records, key=key, value=value)
        if self._halts_on_unknown:
            self._refuse_unknown(records, key=key, val=value)
        ingest = pc.multiply(records.column(names.INGEST_TIMESTAMP), MICROS_PER_MS).cast(TIMESTAMP)
        columns = [key, value, translate_headers(records.column("headers")), self._kafka(records, ingest)]
        if self._row.partition_source == "flat":
            columns.append(ingest)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _decode(
        self, part: str, mapping: ValueMapping, records: pa.RecordBatch, envelope: EnvelopeReader | None
    ) -> pa.StructArray:
        seen = self.schema_ids[part]
        try:
            rows = decode_values(mapping, records.column(part), envelope, headers=records.column("headers"), seen=seen)
            return rows if self._unapproved is None else self._unapproved.keep_raw(part, rows, records, seen=seen)
        except SchemaRegistryError as error:
            context = {name: value for name, value in error.context.items() if name != "row"}
            offset = records.column("offset")[error.context["row"]].as_py()
            raise type(error)(
                error.message, topic=self._topic, partition=self._partition, offset=offset, **context
            ) from error

    def _kafka(self, records: pa.RecordBatch, ingest: pa.Array) -> pa.StructArray:
        event, append, raw = translate_timestamps(records)
        columns = {name: records.column(name) for name in _TAKEN_OVER} | {
            names.PARTITION: _constant(self._partition, records.num_rows),
            names.SCHEMA_VERSION: _constant(self._row.schema_version, records.num_rows),
            names.EVENT_TIMESTAMP: event,
            names.INGEST_TIMESTAMP: ingest,
            names.APPEND_TIMESTAMP: append,
            names.RAW_TIMESTAMP: raw,
        }
        fields = list(KAFKA_FIELD.type)
        return pa.StructArray.from_arrays([columns[field.name] for field in fields], fields=fields)

    def _refuse_errors(self, records: pa.RecordBatch, **decoded: pa.StructArray) -> None:
        for part, rows in decoded.items():
            if rows.type.get_field_index(names.ERR) < 0:
                continue
            errors = rows.field(names.ERR)
            if errors.null_count == len(errors):
                continue
            first = pc.index(pc.not_equal(errors, UNAPPROVED_SCHEMA), value=True).as_py()
            if first < 0:
                continue
            raise ParseHalted(
                f'A {part} can\'t be decoded and the topic says on_parse_error = "halt"; mend the schema, '
                'or set "pass_through" to archive it as it is',
                topic=self._topic,
                partition=self._partition,
                offset=records.column("offset")[first].as_py(),
                code=errors[first].as_py(),
            )

    def _refuse_unknown(self, records: pa.RecordBatch, **decoded: pa.StructArray) -> None:
        for part, rows in decoded.items():
            unknown = self.recognizer.unknown(rows, part)
            if unknown is None:
                continue
            raise UnrecognizedHalted(
                f"A {'key' if part == names.KEY else 'value'} has fields that the schema doesn't know, and the topic "
                'says on_unrecognized = "halt". Give it the schema that its producers use; or set "warn" to archive '
                "these fields as bytes in __unrecognized__",
                topic=self._topic,
                partition=self._partition,
                offset=records.column("offset")[int(np.argmax(unknown))].as_py(),
            )


def translate_timestamps(records: pa.RecordBatch) -> tuple[pa.Array, pa.Array, pa.Array]:
    """`raw_timestamp` has a consumer's time if it doesn't fit its column."""
    produced = records.column("timestamp").to_numpy()
    appended = records.column("append_timestamp")
    has_append = appended.is_valid().to_numpy(zero_copy_only=False)
    append_ms = appended.fill_null(NO_TIMESTAMP).to_numpy(zero_copy_only=False)
    event_fits, append_fits = _fits(produced), _fits(append_ms)
    append_wild = has_append & ~append_fits
    return (
        _micros(produced, event_fits & (produced != NO_TIMESTAMP)),
        _micros(append_ms, has_append & append_fits),
        pa.array(np.where(append_wild, append_ms, produced), mask=event_fits & ~append_wild),
    )


def _fits(times: Int64Array) -> Flags:
    return (times >= YEAR_1_MS) & (times <= YEAR_9999_END_MS)


def _micros(times: Int64Array, valid: Flags) -> pa.Array:
    return pa.array(np.where(valid, times, 0) * MICROS_PER_MS, mask=~valid).cast(TIMESTAMP)


def _constant(value: int, rows: int) -> pa.Array:
    return pa.array(np.full(rows, value, np.int32))


def translate_headers(headers: pa.ListArray) -> pa.ListArray:
    """Keep order and duplicates. Keys that aren't UTF-8 have a separate field."""
    entries = headers.flatten()
    keys, raw_keys = _texts(entries.field("key"))
    fields = list(HEADER_TYPE)
    translated = pa.StructArray.from_arrays([keys, entries.field("value"), raw_keys], fields=fields)
    offsets = pc.subtract(headers.offsets, headers.offsets[0])
    return pa.ListArray.from_arrays(offsets, translated, type=HEADERS_FIELD.type)


def _texts(keys: pa.BinaryArray) -> tuple[pa.StringArray, pa.BinaryArray]:
    try:
        return keys.cast(pa.string()), pa.nulls(len(keys), pa.binary())
    except pa.ArrowInvalid:
        return _mended(keys)


def _mended(keys: pa.BinaryArray) -> tuple[pa.StringArray, pa.BinaryArray]:
    coded = keys.dictionary_encode()
    distinct = coded.dictionary.to_pylist()
    texts = [key.decode("utf-8", "replace") for key in distinct]
    raw = [None if text.encode("utf-8") == key else key for text, key in zip(texts, distinct, strict=True)]
    return pa.array(texts, pa.string()).take(coded.indices), pa.array(raw, pa.binary()).take(coded.indices)
