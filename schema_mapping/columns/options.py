"""The options of a mapping."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self, TypeAlias, get_args

from schema_mapping.errors import MappingOptionsError

HARD_DEPTH: Final = 28
HARD_COLUMNS: Final = 10_000

WellKnownTypes: TypeAlias = Literal["struct", "native"]
Uint64: TypeAlias = Literal["long", "decimal"]

LATER: Final = {"well_known_types": "struct", "uint64": "long"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingOptions:
    """Limits and choices (docs/configuration.md), part of the fingerprint.

    `max_depth` counts from the root, which is 1; `max_columns` counts leaf columns. `expand_cuts` reconsiders cuts.
    Without `keep_removed`, replays of older rows aren't exact after a rewrite.
    """

    max_depth: int = 24
    max_columns: int = 2_000
    expand_cuts: bool = False
    keep_removed: bool = True
    well_known_types: WellKnownTypes = "struct"
    uint64: Uint64 = "long"

    def __post_init__(self) -> None:
        for name, value, hard in (
            ("max_depth", self.max_depth, HARD_DEPTH),
            ("max_columns", self.max_columns, HARD_COLUMNS),
        ):
            if not 1 <= value <= hard:
                raise MappingOptionsError(f"{name} must be from 1 to {hard}", **{name: value})
        for name, choice, choices in (
            ("well_known_types", self.well_known_types, get_args(WellKnownTypes)),
            ("uint64", self.uint64, get_args(Uint64)),
        ):
            if choice not in choices:
                raise MappingOptionsError(f"{name} must be {' or '.join(choices)}", **{name: choice})

    def to_json(self) -> dict[str, Any]:
        """Omits later options with their default, so that old fingerprints stay the same."""
        return {name: value for name, value in asdict(self).items() if LATER.get(name) != value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**data)
