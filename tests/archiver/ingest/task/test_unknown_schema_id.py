"""Records with an unresolvable schema id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from archiver.errors import SchemaRegistryDenied, SchemaRegistryError, SchemaRegistryUnavailable
from archiver.ingest.task.values import TaskResult
from archiver.ingest.task.work import translate_range
from archiver.schemas.protobuf.message_choice import MessageChoice
from archiver.schemas.protobuf.registered_schema import Indexes
from archiver.schemas.registry.envelope import RegistryEnvelopes
from catalog.model import SchemaIdentity, SchemaNumber
from schema_mapping import RawMapping, RowMapping, compile_mapping
from schema_mapping.columns.ids import ColumnIds
from tests.support.kafka.logs import DAY, Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record
from tests.support.schemas.proto_text import descriptor_of

KNOWN, UNSEEN, LATER = (b"\0\0\0\0" + bytes([at]) + b"\0" for at in (1, 2, 3))
TYPE = descriptor_of("message M { int32 a = 1; }")
MAPPING = compile_mapping(TYPE)


@dataclass(frozen=True)
class Ids:
    kind: type[SchemaRegistryError] = SchemaRegistryUnavailable

    def messages(self, schema_id: SchemaNumber, indexes: Indexes) -> frozenset[str]:
        del indexes
        if schema_id == 1:
            return frozenset({"t.M"})
        raise self.kind("it does not answer")

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return {SchemaIdentity(number): b"files" for number in schema_ids}

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> Ids:
        del schemas
        return self


def shifted(ids: ColumnIds, by: int) -> ColumnIds:
    return ColumnIds(columns=tuple(replace(column, field_id=column.field_id + by) for column in ids.columns))


def archive(folder: Path, log: list[bytes], ids: Ids | None = None, *, keys: bool = False) -> TaskResult:
    value = compile_mapping(TYPE, ids=shifted(MAPPING.ids, 200))
    mapped = compile_mapping(TYPE, ids=shifted(MAPPING.ids, 100), keep_raw=True)
    key = mapped if keys else RawMapping(raw_id=100)
    made = Bench(folder=folder, source=LogInMemory(log=log), row=RowMapping(key=key, value=value, schema_version=3))
    task = made.task(10, 1000)
    reader = RegistryEnvelopes(choice=MessageChoice(messages=("t.M",), ids=ids or Ids()))
    target = replace(task.target, value_envelope=reader, key_envelope=reader if keys else None)
    return translate_range(replace(task, target=target))


def values(base: int, *values: bytes, day: int = 0) -> bytes:
    return batch(base, *(Record(timestamp=day * DAY, key=KNOWN, value=value) for value in values))


def spans(result: TaskResult) -> list[tuple[int, int, int]]:
    return [
        (range_.start_offset, range_.end_offset, range_.file.rows if range_.file else 0) for range_ in result.ranges
    ]


def test_the_range_ends_before_the_batch(tmp_path: Path) -> None:
    log = [values(10, KNOWN, KNOWN), values(20, KNOWN), values(30, KNOWN, UNSEEN), values(40, LATER), values(50, KNOWN)]
    result = archive(tmp_path, log)
    assert spans(result) == [(10, 21, 3)]
    assert isinstance(result.error, SchemaRegistryUnavailable)
    assert {"topic": "orders", "partition": 4, "offset": 31, "schema_id": 2}.items() <= result.error.context.items()
    assert "row" not in result.error.context
    assert result.learned == {SchemaIdentity(1): b"files"}


def test_a_first_batch_that_waits_is_no_range(tmp_path: Path) -> None:
    result = archive(tmp_path, [values(10, UNSEEN), values(20, KNOWN)])
    assert result.ranges == ()
    assert result.error is not None
    assert result.error.retryable


def test_time_partitions_before_it_have_their_files(tmp_path: Path) -> None:
    log = [values(10 + 2 * at, KNOWN, KNOWN, day=at // 100) for at in range(200)]
    log[150] = values(10 + 2 * 150, KNOWN, UNSEEN, day=1)
    assert spans(archive(tmp_path, log)) == [(10, 210, 200), (210, 310, 100)]


def test_the_earlier_of_key_and_value_counts(tmp_path: Path) -> None:
    log = [
        batch(10, Record(timestamp=0, key=KNOWN, value=KNOWN)),
        batch(20, Record(timestamp=0, key=KNOWN, value=UNSEEN)),
        batch(30, Record(timestamp=0, key=LATER, value=KNOWN)),
    ]
    result = archive(tmp_path, log, keys=True)
    assert spans(result) == [(10, 11, 1)]
    assert result.error is not None
    assert result.error.context["offset"] == 20


@pytest.mark.parametrize("kind", [SchemaRegistryDenied, SchemaRegistryError])
def test_other_refusals_end_it_there_too(tmp_path: Path, kind: type[SchemaRegistryError]) -> None:
    result = archive(tmp_path, [values(10, KNOWN), values(20, UNSEEN)], Ids(kind))
    assert spans(result) == [(10, 11, 1)]
    assert type(result.error) is kind
