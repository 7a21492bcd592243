"""Which schema changes are compatible for queries (docs/schema-evolution.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schema_mapping.columns.evolution import Change


class CompatibilityRule(StrEnum):
    """A rule's value is the change that breaks it."""

    RENAMED = "renamed"
    REMOVED = "removed"
    DROPPED = "dropped"
    REPLACED = "replaced"
    CUT = "cut"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    CompatibilityRule.RENAMED: "queries that use the old name fail",
    CompatibilityRule.REMOVED: "newer rows have no value in the column",
    CompatibilityRule.DROPPED: "queries that use the column fail",
    CompatibilityRule.REPLACED: "the name leads to a new column, the older rows' values are under another name",
    CompatibilityRule.CUT: "newer rows have no value in the columns below it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRule:
    rule: CompatibilityRule
    change: Change

    def to_json(self) -> dict[str, Any]:
        return {"rule": str(self.rule), "column": self.change.column, "meaning": self.rule.meaning}


def broken_rules(changes: Iterable[Change], allowed: Collection[CompatibilityRule] = ()) -> tuple[BrokenRule, ...]:
    """Of a replaced column's changes only the replacement counts."""
    listed = tuple(changes)
    replaced = {(change.root, change.path) for change in listed if str(change.kind) == CompatibilityRule.REPLACED}
    rules = {str(rule): rule for rule in CompatibilityRule if rule not in allowed}
    return tuple(
        BrokenRule(rule=rules[str(change.kind)], change=change)
        for change in listed
        if str(change.kind) in rules
        and not (str(change.kind) == CompatibilityRule.RENAMED and (change.root, change.path) in replaced)
    )
