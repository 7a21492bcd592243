"""Histories of fixed seeds; player and judge can fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tests.chaos.acts import FAULT_EVERY, Act, Plan, Verb
from tests.chaos.judge import Violation, judge_advice, judge_books, judge_order, judge_rows, judge_store, judge_verdict
from tests.chaos.model import Model, RecordState
from tests.chaos.run import RIGHT, HistoryResult, HistoryResults, play
from tests.chaos.said import Said
from tests.fault.soak.run import ground
from tests.fault.soak.scene import Ground
from tests.support.servers.stack import Stack

SEED, ACTS = 1, 12


@pytest.fixture(scope="module")
def where(stack: Stack) -> Iterator[Ground]:
    with ground(stack) as made:
        yield made


@pytest.mark.integration
@pytest.mark.parametrize("number", range(3))
def test_histories_end_right(where: Ground, number: int) -> None:
    result = play(where, Plan.draw(SEED, number, ACTS), number=number)
    assert result.ended == RIGHT, "\n".join((f"seed {SEED}: {result}", *result.notes))


def test_a_number_draws_the_same_history_again() -> None:
    plan = Plan.draw(7, 3, 30)
    assert plan == Plan.draw(7, 3, 30) != Plan.draw(7, 4, 30)
    assert len(plan.acts) == 30
    faulty = [index for index, act in enumerate(plan.acts) if act.is_faulty]
    assert faulty
    assert all(index % FAULT_EVERY == FAULT_EVERY - 1 for index in faulty)
    assert [Act.from_json(act.to_json()) for act in plan.acts] == list(plan.acts)


def model_of(*places: tuple[int, int]) -> Model:
    model = Model(kafka=dict.fromkeys(places, b""))
    model.put(places, RecordState.LIVE)
    return model


def test_model_follows_rollbacks_and_retirements() -> None:
    model = model_of((0, 0), (0, 1), (0, 2))
    model.set_to(frozenset({(0, 0)}))
    assert (model.live, model.missing, model.is_set_back) == ([(0, 0)], [(0, 1), (0, 2)], True)
    model.set_to(frozenset({(0, 0), (0, 1), (0, 2)}))
    assert (model.missing, model.is_intact) == ([], True)
    model.retired({0: 2})
    assert (model.live, model.of(RecordState.RETIRED)) == ([(0, 2)], [(0, 0), (0, 1)])


def files(*places: tuple[int, int], order: int | None = None) -> Any:
    rows = pa.table({"kafka": [{"partition": partition, "offset": offset} for partition, offset in places]})
    data = SimpleNamespace(sort_order_id=order, file_path="s3://here")
    return [SimpleNamespace(live=rows, rows=rows, data=data)]


@pytest.mark.parametrize(
    ("there", "words"),
    [
        ([(0, 0), (0, 1), (0, 1)], "more than once: 0-1"),
        ([(0, 0)], "lost: 0-1"),
        ([(0, 0), (0, 1), (0, 2)], "erased"),
        ([(0, 0), (0, 1), (1, 0)], "unknown"),
    ],
)
def test_rows_that_the_model_has_not_are_violations(there: list[tuple[int, int]], words: str) -> None:
    model = model_of((0, 0), (0, 1), (0, 2))
    model.put([(0, 2)], RecordState.ERASED)
    judge_rows(files((0, 0), (0, 1)), model)
    with pytest.raises(Violation, match=words):
        judge_rows(files(*there), model)


def test_false_claim_of_order_is_a_violation() -> None:
    judge_order(files((0, 1), (0, 0)))
    judge_order(files((0, 1), (1, 0), order=1))
    with pytest.raises(Violation, match="claims an order"):
        judge_order(files((0, 1), (0, 0), order=1))


@pytest.mark.parametrize(
    "text", ["somebody added them; remove them", "If others added these rows, take them out", "pass --accept-lost"]
)
def test_advice_to_remove_rows_is_a_violation(text: str) -> None:
    with pytest.raises(Violation, match="wrong advice"):
        judge_advice([text])
    judge_advice(["run `archiver refill TOPIC`, or note them as erased with --accept-removed"])


def test_stored_rows_of_an_ended_erasure_are_violations() -> None:
    judge_store({})
    with pytest.raises(Violation, match=r"data/a\.parquet still has 0-1"):
        judge_store({"data/a.parquet": [(0, 1)]})


def verdict(*, rows: int, faults: tuple[Any, ...] = ()) -> Said:
    return Said(succeeded=not faults, texts=(), report=SimpleNamespace(rows=rows, faults=faults, partitions=()))


def test_a_verdict_that_is_silent_or_wrong_is_a_violation() -> None:
    model = model_of((0, 0), (0, 1))
    judge_verdict(verdict(rows=2), model)
    with pytest.raises(Violation, match="proves 1 records of 2"):
        judge_verdict(verdict(rows=1), model)
    model.deleted([(0, 1)])
    with pytest.raises(Violation, match="finds nothing wrong"):
        judge_verdict(verdict(rows=1), model)
    with pytest.raises(Violation, match="verify fails"):
        judge_verdict(Said(succeeded=False, texts=("CatalogUnreachable: no answer",)), model)


def test_books_that_differ_are_a_violation() -> None:
    judge_books([])
    with pytest.raises(Violation, match=r"books of the registry differ.*expected rows 20 and 19"):
        judge_books(["partition 0 [0, 20): expected rows 20 and 19"])


def test_results_go_on_where_they_ended(tmp_path: Path) -> None:
    path = tmp_path / "chaos.json"
    plan = Plan.draw(1, 0, 4)
    results = HistoryResults.open(path, seed=1, resume=True)
    results.add(HistoryResult(number=0, plan=plan, ended=RIGHT, acts=4, records=9, seconds=1.0))  # type: ignore[arg-type]
    again = HistoryResults.open(path, seed=1, resume=True)
    assert (len(again.rounds), again.totals()["acts"], again.totals()["wrong"]) == (1, 4, 0)
    assert "| right | 1 |" in again.table()
    with pytest.raises(ValueError, match="seed 1"):
        HistoryResults.open(path, seed=2, resume=True)
    assert Verb.ARCHIVE.is_ours
    assert not Verb.REWRITE.is_ours
