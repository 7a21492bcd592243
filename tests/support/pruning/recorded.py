"""docs/engines/pruning.json, and the page that shows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.archive.engine_findings import ENGINES

_PAGES: Final = Path(__file__).parents[3] / "docs" / "engines"
KEPT: Final = _PAGES / "pruning.json"
PAGE: Final = _PAGES / "pruning.md"
TABLES: Final = {
    "row groups": "row groups read (files opened)",
    "bytes": "MB read",
}
Found = Mapping[str, Any]


def kept() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return result


def keep(engine: str, version: str, table: Found, needed: Mapping[str, Found], read: Mapping[str, Found]) -> None:
    """Files, row groups and kilobytes of `table`; `needed` and `read` have them per question."""
    existing = kept()
    questions = existing.get("questions", {})
    made = {
        title: {
            "needed": numbers,
            **{name: questions.get(title, {}).get(name) for name in ENGINES},
            engine: read[title],
        }
        for title, numbers in needed.items()
    }
    ordered = {
        title: {name: row[name] for name in ("needed", *ENGINES) if row.get(name)} for title, row in made.items()
    }
    versions = existing.get("versions", {}) | {engine: version}
    result = {"table": table, "versions": versions, "questions": ordered}
    KEPT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), result), encoding="utf-8")


def page(text: str, found: Found) -> str:
    cells = {"row groups": _groups, "bytes": _megabytes}
    for table, title in TABLES.items():
        start, end = f"<!-- {table}: written by make interop RECORD=1 -->", f"<!-- end of {table} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}\n{_markdown(title, found, cells[table])}\n{end}{after}"
    return text


def _markdown(title: str, found: Found, cell: Callable[[Found, Found], str]) -> str:
    questions: Mapping[str, Mapping[str, Found]] = found["questions"]
    names = ["needed", *(name for name in ENGINES if all(name in row for row in questions.values()))]
    heads = ["needed", *(ENGINES[name] for name in names[1:])]
    if cell is _megabytes:
        names, heads = names[1:], heads[1:]
    lines = [f"| {title} | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for question, row in questions.items():
        lines.append(f"| {question} | {' | '.join(cell(row[name], row['needed']) for name in names)} |")
    return "\n".join(lines)


def _groups(read: Found, needed: Found) -> str:
    text = f"{read['groups']} ({read['files']})"
    return f"**{text}**" if read["groups"] > needed["groups"] else text


def _megabytes(read: Found, _: Found) -> str:
    megabytes = read["kilobytes"] / 1_000
    return f"{megabytes:.2f}" if megabytes < 1 else f"{megabytes:.1f}" if megabytes < 10 else f"{megabytes:.0f}"
