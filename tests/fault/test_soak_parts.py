"""The soak's parts without servers."""

from __future__ import annotations

import json
import os
from itertools import chain
from pathlib import Path

import pytest

from archiver.fault_points import FaultPoint
from tests.fault.soak import deck, faults
from tests.fault.soak.faults import described
from tests.fault.soak.jobs import Job, running
from tests.fault.soak.log_cut import cut_log
from tests.fault.soak.results import EXACTLY_ONCE, WRONG, Results, RoundResult
from tests.support.kafka.record_batches import Record, build
from tests.support.timing.eventually import eventually


def rounds(seed: int, count: int) -> list[tuple[dict[str, object], ...]]:
    return [tuple(map(described, deck.deal(seed, number).faults)) for number in range(count)]


def test_a_round_is_known_by_seed_and_number() -> None:
    assert rounds(5, 300) == rounds(5, 300)
    assert rounds(5, 300)[:50] != rounds(6, 50)
    assert deck.deal(5, 17).noise.random() == deck.deal(5, 17).noise.random()


def test_a_job_that_hangs_says_where(tmp_path: Path) -> None:
    config = tmp_path / "config"
    os.mkfifo(config)
    with running(Job(config=config), tmp_path) as job:
        silent = writer(config)  # the job reads what never comes
        with pytest.raises(TimeoutError, match=r"did not end in 0 s(.|\n)*load_config"):
            job.ending(0.1)
        assert job.ends(30)
        os.close(silent)


def writer(pipe: Path) -> int:
    return eventually(
        lambda: os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "the pipe has a reader", seconds=60, despite=(OSError,)
    )


def test_two_hundred_rounds_hold_every_kind_and_every_step() -> None:
    dealt = [deck.deal(1, number).faults for number in range(200)]
    later = [deck.deal(1, number).faults for number in range(200, 500)]
    assert {type(fault) for fault in chain(*dealt, *later)} == set(faults.Fault.__args__)
    points = {fault.point for fault in chain(*dealt) if isinstance(fault, faults.KillAtPoint)}
    assert points == set(FaultPoint)
    assert sum(len(cards) == 2 for cards in dealt) > 20
    on_spark = sum(any(map(faults.on_spark, cards)) for cards in dealt)
    assert 200 / 10 <= on_spark <= 200 / 6
    json.dumps(rounds(1, 200))


def test_only_what_is_allowed_is_dealt() -> None:
    dealt = chain.from_iterable(
        deck.deal(2, number, allowed=lambda fault: not faults.on_spark(fault)).faults for number in range(99)
    )
    assert not any(map(faults.on_spark, dealt))


def result(number: int, *anomalies: str, struck: bool = True) -> RoundResult:
    return RoundResult(
        number=number,
        topic=0,
        faults=({"kind": "Terminate", "seconds": 1.0, "struck": struck},),
        jobs=("succeeded",),
        records=10,
        digest="0" * 32,
        seconds=1.5,
        anomalies=anomalies,
    )


def test_results_go_on_where_they_stopped(tmp_path: Path) -> None:
    path = tmp_path / "faults.json"
    first = Results.open(path, seed=3, resume=True)
    first.add(result(0))
    first.add(result(1, "lost: 1"))
    second = Results.open(path, seed=3, resume=True)
    second.add(result(2, struck=False))
    kept = json.loads(path.read_text())
    assert [round_["number"] for round_ in kept["rounds"]] == [0, 1, 2]
    assert [round_["outcome"] for round_ in kept["rounds"]] == [EXACTLY_ONCE, WRONG, EXACTLY_ONCE]
    assert (kept["total_rounds"], kept["struck"], kept["wrong"], kept["records"]) == (3, 2, 1, 30)
    assert "| Terminate | 3 | 2 | 1 |" in second.table()
    assert [file.name for file in tmp_path.iterdir()] == ["faults.json"]
    with pytest.raises(ValueError, match="seed 3"):
        Results.open(path, seed=4, resume=True)
    assert Results.open(path, seed=4, resume=False).rounds == []


@pytest.mark.parametrize(("before", "ends"), [(25, 20), (20, 20), (19, 10), (31, 30), (3, 0)])
def test_a_log_is_cut_at_a_batch(tmp_path: Path, before: int, ends: int) -> None:
    batches = [build([Record()] * 10, base_offset=base) for base in (0, 10, 20)]
    segment = tmp_path / f"{0:020}.log"
    segment.write_bytes(b"".join(batches))
    for name in (f"{0:020}.index", f"{30:020}.snapshot", "leader-epoch-checkpoint"):
        (tmp_path / name).touch()
    assert cut_log(tmp_path, before) == ends
    assert segment.read_bytes() == b"".join(batches[: ends // 10])
    assert {path.name for path in tmp_path.iterdir()} == {segment.name, "leader-epoch-checkpoint"}
