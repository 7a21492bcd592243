"""Only an erasure whose search ended may be noted as finished."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from archiver.upkeep.erase.finishing import Standing, _rewriters
from catalog.registry.erased_offsets import CONDITION, SEARCHED_MS, SUPERSEDED_BY
from catalog.registry.rewriting_runs import RewritingRun


def test_an_erasure_is_finished_only_after_its_search() -> None:
    cut = {"id": "A", CONDITION: "hash"}
    standing = Standing.of(
        {
            "cut": cut,
            "followed": {**cut, SUPERSEDED_BY: "B"},
            "whole": {**cut, SEARCHED_MS: 1},
            "slow": {**cut, SUPERSEDED_BY: "B", SEARCHED_MS: 1},
            "rebuilt": {"id": "rebuilt"},
        }
    )
    assert standing.searched == ("whole", "slow", "rebuilt"), "one without a condition goes by known offsets"
    assert standing.superseded == ("followed",)
    assert standing.unsearched == ("cut",)


@pytest.mark.parametrize(("grace", "rewriters"), [(0.0, ()), (1.0, ("old",)), (86_400.0, ("old", "silent"))])
def test_a_rewrite_between_two_signs_of_life_is_alive(grace: float, rewriters: tuple[str, ...]) -> None:
    runs = (
        RewritingRun(id="old", begun_ms=5, silent_seconds=599.0),
        RewritingRun(id="silent", begun_ms=5, silent_seconds=3_601.0),
        RewritingRun(id="later", begun_ms=11, silent_seconds=1.0),
    )
    work: Any = SimpleNamespace(
        config=SimpleNamespace(archive=SimpleNamespace(orphan_grace=grace)),
        registry=SimpleNamespace(claims=SimpleNamespace(runs=lambda _topic: runs)),
        topic=None,
    )
    assert _rewriters(work, 10) == rewriters
