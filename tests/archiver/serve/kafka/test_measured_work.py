"""Clients' work is measured in every task."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from archiver.serve.kafka import apis, coordination
from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.frames import RequestHead
from archiver.serve.kafka.loop_time import LoopTime
from archiver.serve.kafka.service import Request
from archiver.serve.nodes import GroupDuty
from catalog.registry import GroupClaim
from tests.support.timing.eventually import settle

HEARTBEAT, OFFSET_FETCH = 12, 9


def test_work_on_a_group_counts_for_its_client() -> None:
    async def play() -> None:
        now = 0.0
        loop_time = LoopTime(clock=lambda: now)
        turns = ClientTurns(loop_time, "a")

        async def coordinating(_: str, work: Callable[[GroupDuty], Awaitable[Any]], **__: Any) -> Any:
            async def task() -> Any:
                return await work(GroupDuty(GroupClaim(cluster_id="c", node_id=1, epoch=1)))

            return await asyncio.create_task(task())

        async def handler(*_: Any) -> Any:
            nonlocal now
            now += 0.1
            await settle(1)
            now += 0.2
            return {"error_code": 0}

        service: Any = SimpleNamespace(
            budget=lambda _: None, cluster=SimpleNamespace(coordinating=coordinating), budgets=None
        )
        client: Any = SimpleNamespace(turns=turns)
        request = Request(
            api_key=HEARTBEAT,
            version=4,
            correlation_id=1,
            client_id="a",
            body=SimpleNamespace(group_id="g"),
            client=client,
        )
        api = replace(apis.APIS[HEARTBEAT], handler=handler)
        answer = await turns.run(coordination.by_coordinator(service, request, api, "g"))
        assert answer == {"error_code": 0}
        assert loop_time.seconds == pytest.approx(0.3)
        assert loop_time.payer("a").level < 5.0 - 0.29

    asyncio.run(play())


def test_cancelled_work_leaves_no_cycles() -> None:
    class Kept: ...

    async def gather(_: Kept) -> None:
        await asyncio.gather(*(asyncio.Event().wait() for _ in range(2)))

    async def work(kept: Kept) -> None:
        await ClientTurns(LoopTime(clock=lambda: 0.0), "a").run(gather(kept))

    async def play() -> bool:
        kept = Kept()
        reference = weakref.ref(kept)
        task = asyncio.create_task(work(kept))
        del kept
        await settle(1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        del task
        await settle(2)
        return reference() is None

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(play())
    finally:
        gc.enable()


@pytest.mark.parametrize(("partitions", "is_threaded"), [(1, False), (400, False), (1000, True)])
def test_an_answer_with_many_elements_is_encoded_in_a_thread(partitions: int, is_threaded: bool) -> None:
    async def play() -> tuple[bytes, bool]:
        loop_time = LoopTime(clock=lambda: 0.0)
        turns = ClientTurns(loop_time, "a")
        request: Any = SimpleNamespace(client=SimpleNamespace(turns=turns))
        elements = [
            {
                "partition_index": number,
                "committed_offset": number,
                "committed_leader_epoch": -1,
                "metadata": "",
                "error_code": 0,
            }
            for number in range(partitions)
        ]
        message = {"topics": [{"name": "orders", "partitions": elements}], "error_code": 0}
        frame = await apis.encode(request, RequestHead(OFFSET_FETCH, 5, 1), message)
        has_thread = loop_time._thread is not None
        loop_time.close()
        return frame, has_thread

    frame, was_threaded = asyncio.run(play())
    assert len(frame) > partitions * 16
    assert was_threaded is is_threaded
