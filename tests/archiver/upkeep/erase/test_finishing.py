"""When an erasure counts as finished."""

from __future__ import annotations

from archiver.upkeep.erase.finishing import Standing
from catalog.registry.erased_offsets import CONDITION, SEARCHED_MS, SUPERSEDED_BY


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
