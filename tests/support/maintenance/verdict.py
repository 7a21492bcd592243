"""Expected outcomes by effect, and outcomes as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from tests.support.maintenance.course import IDENTICAL, NOTHING, OK, Outcome
from tests.support.maintenance.operations import ROWS, Effect, Operation

_TOLD: Final = {
    Effect.KEEPS: NOTHING,
    Effect.REMOVES: "RowsRemoved",
    Effect.ALTERS: "RowsAltered",
    Effect.SETS_BACK: "RolledBack",
    Effect.UPGRADES: "FormatUpgraded",
}
_PARTITIONS: Final = 2


def faults(operation: Operation, seen: Outcome) -> list[str]:
    events = _TOLD[operation.effect]
    places = [(partition, offset) for partition in range(_PARTITIONS) for offset in range(ROWS)]
    removed = sum(operation.gone(*value) for value in places)
    expected: dict[str, object] = {
        "engine_error": None,
        "replay": operation.replay,
        "told": events,
        "archiving": OK if events == NOTHING else events,
    }
    if operation.effect is not Effect.UPGRADES:
        expected |= {
            "archiving_after": OK,
            "replay_after": IDENTICAL,
        }
    if operation.effect is not Effect.UPGRADES and not operation.beside:
        expected |= {
            "replay_after_orphans": IDENTICAL,
            "replay_after_reprocess": IDENTICAL,
            "status_after_rebuild": NOTHING,
        }
    if operation.effect in {Effect.KEEPS, Effect.REMOVES}:
        expected |= {
            "rows": {"before": len(places), "after": len(places) - removed},
            "replay_in_progress": IDENTICAL,
            "told_rows": removed,
        }
    result = asdict(seen)
    faults = [f"{name}: {result[name]!r}, not {value!r}" for name, value in expected.items() if result[name] != value]
    if (seen.mended_by == NOTHING) != (operation.effect in {Effect.KEEPS, Effect.UPGRADES}):
        faults.append(f"mended_by: {seen.mended_by!r}")
    if operation.effect in {Effect.ALTERS, Effect.SETS_BACK} and not seen.told_rows:
        faults.append("told_rows: none")
    return faults


def table_of(outcomes: Sequence[Outcome]) -> str:
    head = (
        "| engine | operation | rows | a replay then | a running replay | `status` and runs say | brought back by |",
        "|---|---|---|---|---|---|---|",
    )
    return "\n".join((*head, *map(_row, outcomes)))


def _row(seen: Outcome) -> str:
    cells = (
        seen.engine,
        seen.operation + (" *" if seen.beside else ""),
        f"{seen.rows['before']} → {seen.rows['after'] if seen.rows['after'] >= 0 else '?'}",
        seen.replay,
        seen.replay_in_progress,
        f"{seen.told} ({seen.told_rows} rows)" if seen.told_rows else seen.told,
        seen.mended_by,
    )
    return f"| {' | '.join(cells)} |"
