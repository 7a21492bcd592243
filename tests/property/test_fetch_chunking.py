"""Any fetches of a log give the same files."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.files.records import Records
from archiver.ingest.kafka_log.grouping import Grouper
from archiver.ingest.kafka_log.ingest_clock import IngestClock
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.task.work import translate_range
from archiver.wire import decode_batches
from tests.support.kafka.logs import DAY, PLAN, Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record

shapes = st.lists(st.tuples(st.integers(0, 4 * DAY), st.integers(1, 4), st.integers(0, 300)), max_size=25)


def log_of(shape: Sequence[tuple[int, int, int]]) -> list[bytes]:
    log, offset = [], 0
    for time, records, size in shape:
        log.append(batch(offset, *[Record(timestamp=time, value=b"x" * size)] * records))
        offset += records + size % 3
    return log


def groups_of(log: list[bytes], cuts: Sequence[int]) -> list[Records]:
    clock = IngestClock(half_window=3, max_ahead_bytes=1_500)
    grouper = Grouper(plan_time_ms=PLAN, clock=clock, group_bytes=1_000, group_rows=7)
    planned = PlannedRange(partition=0, start_offset=0, end_offset=1 << 40, owns_head=True)
    groups = [group for piece in LogInMemory(log=log, cuts=cuts).batches(planned) for group in grouper.push(piece)]
    return [*groups, *grouper.finish()]


@given(shape=shapes, cuts=st.lists(st.integers(0, 25), max_size=8))
def test_groups_do_not_depend_on_fetches(shape: list[tuple[int, int, int]], cuts: list[int]) -> None:
    log = log_of(shape)
    whole, cut = groups_of(log, ()), groups_of(log, cuts)
    assert [group.columns.to_pydict() for group in cut] == [group.columns.to_pydict() for group in whole]
    for name in ("times", "rows", "first_offset", "last_offset"):
        values = [[getattr(group.batches, name).tolist() for group in groups] for groups in (whole, cut)]
        assert values[0] == values[1]
    assert sum(len(group) for group in whole) == sum(records for _, records, _ in shape)
    assert all(len(group) < 7 + 4 for group in whole)
    assert all(group.end_offset == after.start_offset for group, after in pairwise(whole))
    if log:
        decoded = decode_batches(b"".join(log), start_offset=0, end_offset=1 << 40).records
        for name in decoded.schema.names:
            grouped = [value for group in whole for value in group.columns.column(name).to_pylist()]
            assert grouped == decoded.column(name).to_pylist()


@pytest.mark.parametrize("seed", range(2))
def test_files_do_not_depend_on_fetches(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    day = 0
    shape = []
    for _ in range(200):
        day += random.random() < 0.02
        wild = PLAN if random.random() < 0.1 else day * DAY + random.randrange(DAY)
        shape.append((wild, random.randrange(1, 200), random.randrange(2_000)))
    log = log_of(shape)
    digests = []
    for name, cuts in (("whole", []), ("each", range(200)), ("some", random.sample(range(200), 20))):
        made = Bench(folder=tmp_path / name, source=LogInMemory(log=log, cuts=cuts), target_file_size=2 << 20)
        ranges = translate_range(made.task(0, 1 << 40)).ranges
        files = [item.file for item in ranges if item.file is not None]
        digests.append(
            [
                (
                    item.start_offset,
                    item.end_offset,
                    sha256(Path(file.path.removeprefix("file://")).read_bytes()).digest(),
                )
                for item, file in zip(ranges, files, strict=True)
            ]
        )
    assert digests[0] == digests[1] == digests[2]
    assert len(digests[0]) >= 3
