"""The status of a topic, as people and machines read it."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from archiver.cli.status_screen import age, status_json, status_table
from archiver.errors import DataLoss
from archiver.ingest.topic.status import PartitionStatus, TopicStatus, batch_time
from archiver.kafka import OpenTransaction
from catalog.model import FileState, StateCount
from catalog.ranges.holes import GoneRows, Hole
from tests.support.kafka.record_batches import Record, build

WRITER = OpenTransaction(producer_id=7, producer_epoch=2, first_offset=120, last_timestamp=1, transactional_id="pay")
STATUS = TopicStatus(
    topic="orders",
    table="kafka.orders",
    partitions=(
        PartitionStatus(
            partition=0,
            archived_to=1_000,
            staged_to=1_500,
            staged_files=2,
            log_start=0,
            last_stable=12_000,
            high_watermark=12_500,
            lag_records=11_000,
            lag_seconds=7_300.4,
            open_transactions=(WRITER,),
        ),
        PartitionStatus(partition=1, problem=DataLoss("gone", lost="[1, 5)")),
    ),
    files={FileState.COMMITTED: StateCount(ranges=3, rows=9, size_bytes=27)},
    lost_offsets=4,
    holes=(Hole(range_id="A", partition=1, start_offset=10, end_offset=20, rows=3),),
    gone=GoneRows(erased=5, lost=6, retired=7),
)


def shown(status: TopicStatus) -> str:
    console = Console(width=110, file=io.StringIO())
    console.print(status_table(status))
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def test_people_see_offsets_lag_and_who_is_in_the_way() -> None:
    text = shown(STATUS)
    assert (
        "orders in kafka.orders: 11,000 behind; files: 3 committed; 4 offsets recorded as lost; 5 rows erased by others"
        in text
    )
    assert "6 rows recorded as lost; 7 rows retired" in text
    for part in ("1,000", "1,500 (2 files)", "12,000", "12,500", "2.0 h"):
        assert part in text
    assert "open transaction from 120 on, of producer 7 epoch 2 (pay)" in text
    assert "DataLoss: gone" in text
    assert "partition 1: 3 rows of [10, 20) are missing from the table" in text


def test_machines_get_plain_values() -> None:
    found = json.loads(json.dumps(status_json(STATUS)))
    assert (found["lag_records"], found["lag_seconds"], found["lost_offsets"]) == (11_000, 7_300.4, 4)
    assert (found["erased_rows"], found["lost_rows"], found["retired_rows"]) == (5, 6, 7)
    assert found["holes"] == [{"partition": 1, "start_offset": 10, "end_offset": 20, "rows": 3}]
    assert found["files"] == {"committed": {"ranges": 3, "rows": 9, "size_bytes": 27}}
    assert found["partitions"][0]["open_transactions"][0]["transactional_id"] == "pay"
    assert found["partitions"][0]["problem"] is None
    assert found["partitions"][1]["problem"] == {
        "kind": "DataLoss",
        "message": "gone",
        "context": {"lost": "[1, 5)"},
        "retryable": False,
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.4, "0 s"), (119.0, "119 s"), (150.0, "2.5 min"), (7_300.0, "2.0 h"), (2e6, "23.1 d")],
)
def test_ages_are_as_people_say_them(seconds: float | None, text: str) -> None:
    assert age(seconds) == text


def test_a_batch_tells_its_time_and_an_older_message_none() -> None:
    batch = build([Record(timestamp=1_700_000_000_123)], base_offset=5, leader_epoch=1, builder="aiokafka")
    assert batch_time(batch) == 1_700_000_000_123
    assert batch_time(batch[:40]) is None
    assert batch_time(batch[:16] + b"\x01" + batch[17:]) is None
    assert batch_time(b"") is None
