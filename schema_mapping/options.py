"""What a mapping may be told: its limits, and what becomes of columns whose field is gone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from schema_mapping.errors import MappingOptionsError

HARD_DEPTH: Final = 28
HARD_COLUMNS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingOptions:
    """Limits and choices of a mapping (DESIGN section 4); part of its fingerprint.

    `max_depth` counts messages from the root, which is 1. `max_columns` counts a table's leaf columns and decides which
    messages are expanded; a message that is expanded has all its fields, up to 10,000 leaves. `expand_cuts` tries what
    was cut before again. Without `keep_removed`, columns of removed fields leave the table, and rows written by
    older versions lose them in the next rewrite by anyone: such rows can't be replayed exactly after it.
    """

    max_depth: int = 24
    max_columns: int = 2_000
    expand_cuts: bool = False
    keep_removed: bool = True

    def __post_init__(self) -> None:
        for name, value, hard in (
            ("max_depth", self.max_depth, HARD_DEPTH),
            ("max_columns", self.max_columns, HARD_COLUMNS),
        ):
            if not 1 <= value <= hard:
                raise MappingOptionsError(f"{name} must be from 1 to {hard}", **{name: value})

    def to_json(self) -> dict[str, Any]:
        """A JSON object of the options."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The options that `to_json` gave."""
        return cls(**data)
