"""Refused offsets are listed in turns."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.loop_time import LoopTime
from archiver.serve.kafka.refused_offsets import no_offsets
from archiver.serve.kafka.service import Request

PARTITIONS = 1000


class SlowClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.005
        return self.now


@pytest.mark.parametrize("version", [7, 9])
def test_refused_offsets_leave_turns_to_other_clients(version: int) -> None:
    other_turns = 0

    async def play() -> dict[str, Any]:
        nonlocal other_turns
        loop_time = LoopTime(share=1.0, clock=SlowClock())
        client: Any = SimpleNamespace(turns=ClientTurns(loop_time, "a"))
        topic = SimpleNamespace(name="orders", partition_indexes=tuple(range(PARTITIONS)))
        asked = SimpleNamespace(group_id="g", topics=(topic,))
        request = Request(api_key=9, version=version, correlation_id=1, client_id="a", body=asked, client=client)
        task = asyncio.ensure_future(no_offsets(request, asked, ErrorCode.not_coordinator))
        while not task.done():
            await asyncio.sleep(0)
            other_turns += 1
        return await task

    answer = asyncio.run(play())
    (topic,) = answer["topics"]
    assert [partition["partition_index"] for partition in topic["partitions"]] == list(range(PARTITIONS))
    assert other_turns > PARTITIONS / 32
