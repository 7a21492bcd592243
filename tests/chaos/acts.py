"""The acts of a history."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any, Final


class Writer(StrEnum):
    ARROW = "pyarrow"
    DUCKDB = "DuckDB"
    POLARS = "Polars"


class Verb(StrEnum):
    ARCHIVE = "archive"
    COMPACT = "compact"
    REPARTITION = "repartition"
    COMPACT_REPARTITION = "compact --repartition"
    EXPIRE = "expire"
    EXPIRE_ROWS = "expire --rows"
    ERASE = "erase"
    REFILL = "refill"
    ACCEPT = "refill --accept-removed"
    REPROCESS = "reprocess"
    RECONCILE = "reconcile"
    ORPHANS = "orphans"
    SUM_UP = "journal sums"
    REBUILD = "lose Postgres, rebuild"
    REBUILD_BARE = "lose Postgres and journal, rebuild"
    DELETE_COPIED = "another engine: DELETE, copy-on-write"
    DELETE_POSITIONS = "another engine: DELETE by positions"
    DELETE_EQUAL = "another engine: DELETE by equality"
    DELETE_FILE = "another engine: DELETE of a whole file"
    REWRITE = "another engine: rewrite"
    SPLIT = "another engine: split files"
    SHUFFLE = "another engine: rewrite in another order"
    ROLL_BACK = "another engine: roll back"
    ROLL_FORWARD = "another engine: set the newest snapshot"
    CHERRY_PICK = "another engine: roll back, and cherry-pick"
    BRANCH = "another engine: DELETE on a branch"
    FAST_FORWARD = "another engine: DELETE on a branch, fast-forward"
    ADD_COLUMN = "another engine: add a column"
    RENAME = "another engine: rename a column"
    ADD_ROWS = "another engine: add rows, and delete them"
    UPGRADE = "another engine: upgrade to format 3"

    @property
    def is_ours(self) -> bool:
        return not (self.value.startswith(("another", "lose")))


_WEIGHTS: Final = {
    Verb.ARCHIVE: 12,
    Verb.COMPACT: 6,
    Verb.REPARTITION: 1,
    Verb.COMPACT_REPARTITION: 2,
    Verb.EXPIRE: 2,
    Verb.EXPIRE_ROWS: 3,
    Verb.ERASE: 5,
    Verb.REFILL: 8,
    Verb.ACCEPT: 1,
    Verb.REPROCESS: 2,
    Verb.RECONCILE: 1,
    Verb.ORPHANS: 2,
    Verb.SUM_UP: 1,
    Verb.REBUILD: 3,
    Verb.DELETE_COPIED: 3,
    Verb.DELETE_POSITIONS: 4,
    Verb.DELETE_EQUAL: 2,
    Verb.DELETE_FILE: 1,
    Verb.REWRITE: 4,
    Verb.SPLIT: 3,
    Verb.SHUFFLE: 2,
    Verb.ROLL_BACK: 2,
    Verb.ROLL_FORWARD: 1,
    Verb.CHERRY_PICK: 2,
    Verb.BRANCH: 1,
    Verb.FAST_FORWARD: 1,
    Verb.ADD_COLUMN: 1,
    Verb.RENAME: 1,
    Verb.ADD_ROWS: 1,
}
_LAST: Final = {Verb.REBUILD_BARE: 2, Verb.UPGRADE: 1, Verb.ARCHIVE: 3}
"""The last acts are drawn from these: after them a table's state is partly unknown."""
FAULT_EVERY: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """`noise` draws the details; if `is_faulty`, an error is injected and the act repeated."""

    verb: Verb
    noise: int
    is_faulty: bool = False

    def __str__(self) -> str:
        return f"{self.verb}{' (with an error)' if self.is_faulty else ''} #{self.noise}"

    def to_json(self) -> dict[str, Any]:
        return {"verb": self.verb.name, "noise": self.noise, "is_faulty": self.is_faulty}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Act:
        return cls(verb=Verb[value["verb"]], noise=value["noise"], is_faulty=value["is_faulty"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    partitions: int
    is_decoded: bool
    by_columns: bool
    bounds_nested: bool
    writer: Writer = Writer.ARROW
    acts: tuple[Act, ...]

    @classmethod
    def draw(cls, seed: int, number: int, acts: int) -> Plan:
        noise = Random(f"{seed}/{number}")
        shape: dict[str, Any] = {
            "partitions": noise.choice((1, 2, 2, 3)),
            "is_decoded": noise.random() < 0.4,
            "by_columns": noise.random() < 0.4,
            "bounds_nested": noise.random() < 0.8,
            "writer": Random(f"{seed}/{number}/writer").choice(tuple(Writer)),
        }
        drawn = [Act(verb=Verb.ARCHIVE, noise=noise.randrange(1_000_000)) for _ in range(2)]
        for index in range(len(drawn), acts):
            weights = _LAST if index >= acts - 2 else _WEIGHTS
            (verb,) = noise.choices(list(weights), list(weights.values()))
            is_faulty = index % FAULT_EVERY == FAULT_EVERY - 1 and verb.is_ours
            drawn.append(Act(verb=verb, noise=noise.randrange(1_000_000), is_faulty=is_faulty))
        return cls(acts=tuple(drawn), **shape)
