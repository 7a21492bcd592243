"""The options of a mapping."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal, Self, TypeAlias, get_args

from schema_mapping.errors import MappingOptionsError

HARD_DEPTH: Final = 28
HARD_COLUMNS: Final = 10_000

WellKnownTypes: TypeAlias = Literal["struct", "timestamp", "native"]
Uint64: TypeAlias = Literal["long", "decimal"]

LATER: Final = {"well_known_types": "struct", "uint64": "long", "keeps_types": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingOptions:
    """Limits and choices (docs/configuration.md), part of the fingerprint.

    `max_depth` counts messages from the root, which is 1; `max_columns` a table's leaf columns. `expand_cuts` tries to
    expand cut messages again. Without `keep_removed`, columns of removed fields leave the table, and older rows can't
    be replayed exactly after the next rewrite. With `keeps_types`, `well_known_types` is for new tables: a table with a
    schema keeps its choice (`of_table`).
    """

    max_depth: int = 24
    max_columns: int = 2_000
    expand_cuts: bool = False
    keep_removed: bool = True
    well_known_types: WellKnownTypes = "struct"
    uint64: Uint64 = "long"
    keeps_types: bool = False

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

    def of_table(self, mappings: Iterable[str]) -> Self:
        """`mappings` are the texts of its versions' mappings, newest first."""
        if not self.keeps_types:
            return self
        choices = (choice for text in mappings if (choice := _chosen_types(text)) is not None)
        return replace(self, well_known_types=next(choices, self.well_known_types), keeps_types=False)

    def to_json(self) -> dict[str, Any]:
        """Omits later options with their default, so old fingerprints stay."""
        return {name: value for name, value in asdict(self).items() if LATER.get(name) != value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


NEW_TABLES: Final = MappingOptions(well_known_types="timestamp", keeps_types=True)
"""The options without a configuration."""


@lru_cache(maxsize=64)
def _chosen_types(text: str) -> WellKnownTypes | None:
    """None if neither key nor value has a schema."""
    data = json.loads(text)
    for part in ("value", "key"):
        options = data[part].get("options")
        if options is not None:
            chosen: WellKnownTypes = options.get("well_known_types", LATER["well_known_types"])
            return chosen
    return None
