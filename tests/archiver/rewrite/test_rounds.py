"""Rewrites beside other engines' changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from archiver.rewrite.rounds import ROUNDS, commit_batches, in_rounds
from catalog.errors import CatalogUnreachable
from catalog.iceberg.rewrite_commit import Displaced, Rewritten

TABLE = "archive.orders"


def test_work_is_planned_again_until_it_is_done() -> None:
    answers = iter([None, None, "done", "never"])
    assert in_rounds(lambda: next(answers), table=TABLE, may_be="it can be done") == "done"
    assert next(answers) == "never"


def test_false_ends_the_rounds() -> None:
    assert in_rounds(lambda: False, table=TABLE, may_be="it can be done") is False


def test_work_that_is_always_outrun_can_be_tried_later() -> None:
    tries: list[int] = []
    with pytest.raises(CatalogUnreachable, match="faster than it can be done; run it again") as ended:
        in_rounds(lambda: tries.append(1), table=TABLE, may_be="it can be done")
    assert len(tries) == ROUNDS
    assert ended.value.retryable
    assert ended.value.context["table"] == TABLE


@pytest.mark.parametrize("displaced", [None, "b"])
def test_batches_are_planned_on_the_table_as_it_is(displaced: str | None) -> None:
    loads: list[int] = []

    def reload(_: object) -> int:
        loads.append(len(loads) + 1)
        return loads[-1]

    def put(work: object, table: int, rewrite: Any, known: object) -> Rewritten | Displaced:
        return Displaced(paths=()) if rewrite == (displaced, table) else Rewritten(commit_id="c", snapshot_id=table)

    landed: list[tuple[str, Any]] = []
    done = commit_batches(
        cast("Any", SimpleNamespace(catalog=SimpleNamespace(reload=reload))),
        cast("Any", 0),
        ["a", "empty", "b", "c"],
        known={},
        plan=lambda batch, table: None if batch == "empty" else cast("Any", (batch, table)),
        landed=lambda batch, rewrite: landed.append((batch, rewrite)),
        put=put,
    )
    if displaced:
        assert (done, landed) == (False, [("a", ("a", 1))])
    else:
        assert (done, landed) == (True, [("a", ("a", 1)), ("b", ("b", 3)), ("c", ("c", 4))])
