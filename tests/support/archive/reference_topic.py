"""The reference topics with every type of column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver.config import load_config
from tests.support.archive.job_runs import archive_once
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas import reference_schema
from tests.support.schemas.expected_columns import ExpectedColumns
from tests.support.schemas.reference_schema import MESSAGE, VERSIONS, sent
from tests.support.servers.stack import Stack

PARTITIONS = 2
START_MS = 1_700_000_000_000
LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
NATIVE = {"well_known_types": "native", "uint64": "decimal"}
STRUCTS = {"well_known_types": "struct"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceTopic:
    config: Path
    topic: str
    table: str
    rows: list[dict[str, Any]]
    """`key`, `val`, `headers` and, in `kafka`, what the producer knows; by partition and offset."""


def archive_reference(
    stack: Stack, folder: Path, *, native: bool, versions: Sequence[int] = VERSIONS, **keys: Any
) -> ReferenceTopic:
    proto = folder / "reference.proto"
    topic = stack.topic(PARTITIONS)
    value = {"format": "protobuf", "message": MESSAGE, "proto": str(proto)}
    config = stack.config({topic: {"value": value, **(NATIVE if native else STRUCTS), **keys}})
    for version in versions:
        proto.write_text(reference_schema.text(version))
        stack.produce(topic, *_records(version))
        archive_once(config, topic, engine=InlineEngine())
    table = load_config(config).topic(topic).table
    return ReferenceTopic(config=config, topic=topic, table=table, rows=_rows(versions, native=native))


def _records(version: int) -> Iterator[dict[str, Any]]:
    for index, entry in enumerate(sent(version)):
        yield {
            "key": _key(index),
            "value": entry.data,
            "partition": index % PARTITIONS,
            "timestamp": LAST_MS if entry.name == "last year" else START_MS + index,
            "headers": _headers(index),
        }


def _key(index: int) -> bytes | None:
    return (None, b"", b"\xff\x00key")[index % 3]


def _headers(index: int) -> list[tuple[str, bytes | None]]:
    return [("trace", b"\xffid"), ("trace", None), ("", b"")][: index % 4]


def _rows(versions: Sequence[int], *, native: bool) -> list[dict[str, Any]]:
    described = [reference_schema.descriptor(version) for version in versions]
    columns = ExpectedColumns(versions=described, native=native)
    empty = dict.fromkeys(columns.of(next(item.message for item in sent(versions[-1]) if item.message)))
    rows = []
    ends = [0] * PARTITIONS
    for version in versions:
        for index, error in enumerate(sent(version)):
            partition = index % PARTITIONS
            kept = dict.fromkeys(("__prefix__", "__raw__", "__err__", "__form__"))
            if error.message is not None:
                value = {**columns.of(error.message), **kept}
            else:
                value = (
                    None if error.data is None else {**empty, **kept, "__raw__": error.data, "__err__": "truncated@1"}
                )
            rows.append(
                {
                    "key": None if (key := _key(index)) is None else {"__raw__": key},
                    "val": value,
                    "headers": [{"key": name, "value": data, "__raw_key__": None} for name, data in _headers(index)],
                    "kafka": {
                        "partition": partition,
                        "offset": ends[partition],
                        "event_timestamp": 1_000 * (LAST_MS if error.name == "last year" else START_MS + index),
                    },
                }
            )
            ends[partition] += 1
    return sorted(rows, key=lambda row: (row["kafka"]["partition"], row["kafka"]["offset"]))
