"""Offsets of groups that only their coordinator commits."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta

from archiver.serve.groups import CommittedOffsets, RegistryOffsets
from catalog.errors import CoordinatorDeposed
from catalog.registry import GroupClaim, OffsetBudget, Registry


class FencedOffsets(RegistryOffsets):
    """Methods raise CoordinatorDeposed without a current claim on the group."""

    def __init__(
        self,
        dsn: str,
        cluster_id: str,
        *,
        answers_within: float,
        on_refused: Callable[[str, GroupClaim], None] = lambda *_: None,
        saw: Callable[[str, CommittedOffsets], None] = lambda *_: None,
        connect: Callable[..., Registry] = Registry,
    ) -> None:
        """Worker threads call `on_refused` with invalid claims, and `saw` with valid offsets."""
        super().__init__(dsn, cluster_id, answers_within=answers_within, connect=connect)
        self._on_refused = on_refused
        self._saw = saw

    def commit(
        self,
        group_id: str,
        offsets: CommittedOffsets,
        budget: OffsetBudget | None = None,
        *,
        claim: GroupClaim | None,
    ) -> None:
        claim = _checked(group_id, claim)
        try:
            self._opened().group_offsets.commit(self._cluster_id, group_id, offsets, claim=claim, budget=budget)
        except CoordinatorDeposed:
            self._on_refused(group_id, claim)
            raise
        self._saw(group_id, offsets)

    def load(self, group_id: str) -> CommittedOffsets:
        offsets = super().load(group_id)
        if offsets:  # clients may send any name
            self._saw(group_id, offsets)
        return offsets

    def delete(
        self, group_id: str, places: Collection[tuple[str, int]] | None = None, *, claim: GroupClaim | None
    ) -> int:
        claim = _checked(group_id, claim)
        try:
            return self._opened().group_offsets.delete(self._cluster_id, group_id, places, claim=claim)
        except CoordinatorDeposed:
            self._on_refused(group_id, claim)
            raise

    def expire(self, group_id: str, age: float, *, claim: GroupClaim | None) -> int:
        claim = _checked(group_id, claim)
        try:
            return self._opened().group_offsets.expire(
                self._cluster_id, group_id, age=timedelta(seconds=age), claim=claim
            )
        except CoordinatorDeposed:
            self._on_refused(group_id, claim)
            raise


def _checked(group_id: str, claim: GroupClaim | None) -> GroupClaim:
    if claim is None:
        raise CoordinatorDeposed("this node has no claim on the group", group=group_id)
    return claim
