"""docs/engines/maintenance.json, and the page that shows it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.support.maintenance.course import Outcome
from tests.support.maintenance.operations import SPARK_OPERATIONS, TRINO_OPERATIONS
from tests.support.maintenance.verdict import table_of

_PAGES: Final = Path(__file__).parents[3] / "docs" / "engines"
OUTCOMES: Final = _PAGES / "maintenance.json"
PAGE: Final = _PAGES / "maintenance.md"
_BEGIN: Final = "<!-- made from maintenance.json -->\n"
_END: Final = "\n<!-- end -->"

Key = tuple[str, str, bool]

KEYS: Final = tuple((entry.engine, entry.name, entry.beside) for entry in (*SPARK_OPERATIONS, *TRINO_OPERATIONS))


def key_of(seen: Outcome) -> Key:
    return seen.engine, seen.operation, seen.beside


def recorded() -> dict[Key, Outcome]:
    if not OUTCOMES.exists():
        return {}
    return {key_of(value): value for value in (Outcome(**load) for load in json.loads(OUTCOMES.read_text()))}


def record(seen: Outcome) -> None:
    existing = recorded() | {key_of(seen): seen}
    ordered = [existing[value] for value in KEYS if value in existing]
    OUTCOMES.write_text(json.dumps([asdict(value) for value in ordered], indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(with_table(PAGE.read_text()))


def with_table(page: str) -> str:
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}{table_of(list(recorded().values()))}{_END}{after}"
