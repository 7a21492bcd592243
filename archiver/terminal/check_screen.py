"""The findings of `archiver check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from archiver.setup.findings import CheckOutcome, Finding
from archiver.terminal.json_lines import error_json
from archiver.terminal.listing import Unpadded

_MARKS = {
    CheckOutcome.OK: ("ok", "green"),
    CheckOutcome.WARNING: ("warn", "yellow"),
    CheckOutcome.FAILED: ("FAILED", "bold red"),
    CheckOutcome.SKIPPED: ("-", "dim"),
}


def finding_lines(found: Finding) -> Unpadded:
    line = Table.grid(padding=(0, 1))
    line.add_column(width=6)
    line.add_column(width=7, justify="right")
    line.add_column(overflow="fold")
    word, style = _MARKS[found.outcome]
    line.add_row(Text(word, style=style), Text(f"{found.seconds:.1f} s", style="dim"), _said(found))
    return Unpadded(line)


def _said(found: Finding) -> Text:
    said = Text.assemble((found.part, "bold"), f" {found.subject}" if found.subject else "")
    if found.detail:
        said.append(f": {found.detail}")
    if found.error is not None:
        said.append(f": {type(found.error).__name__}: {found.error.message}")
        for name, value in found.error.context.items():
            said.append(f"\n  {name}: {value}", style="dim")
    return said


def verdict(found: Sequence[Finding]) -> Group:
    failed = [finding for finding in found if finding.failed]
    warned = sum(finding.outcome is CheckOutcome.WARNING for finding in found)
    warnings = f", {warned} warning{'' if warned == 1 else 's'}" if warned else ""
    if not failed:
        return Group(Text(f"\nAll is well{warnings}.", style="bold green"))
    parts = ", ".join(dict.fromkeys(finding.part for finding in failed))
    return Group(Text(f"\n{len(failed)} of {len(found)} failed{warnings}: {parts}.", style="bold red"))


def check_json(found: Sequence[Finding]) -> dict[str, Any]:
    return {
        "ok": not any(finding.failed for finding in found),
        "checks": [
            {
                "part": finding.part,
                "subject": finding.subject,
                "outcome": str(finding.outcome),
                "seconds": round(finding.seconds, 3),
                "detail": finding.detail,
                "error": None if finding.error is None else error_json(finding.error),
            }
            for finding in found
        ],
    }
