"""Merged journals."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from archiver.terminal.amounts import counted
from archiver.terminal.error_text import error_text
from archiver.terminal.json_lines import error_json
from archiver.upkeep.journal_upkeep import TableSums


def sums_json(done: TableSums) -> dict[str, Any]:
    return {
        "table": done.table,
        "uuid": str(done.uuid),
        "folder": done.folder,
        **asdict(done.sums),
        "after": done.sums.after,
        "packed": done.packed,
        "error": error_json(done.error) if done.error else None,
    }


def sums_screen(done: TableSums) -> RenderableType:
    sums = done.sums
    text = f"{done.table} ({done.uuid}): {counted(sums.before, 'object')}, {sums.after:,} after it"
    if sums.kept:
        text += f"; {counted(sums.kept, 'object')} summed up that the store doesn't let go"
    if done.packed:
        text += f"; {counted(done.packed, 'object')} of the audit trail packed"
    if done.error is None:
        return Text(text)
    return Group(Text(text), Text("  ").append_text(error_text(done.error)))
