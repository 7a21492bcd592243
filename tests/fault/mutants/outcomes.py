"""Outcomes of mutants as JSON and as a table."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.fault.mutants.bench import Outcome


class Outcomes:
    def __init__(self, path: Path, known: dict[str, dict[str, Any]]) -> None:
        self._path = path
        self._known = known

    @classmethod
    def open(cls, path: Path) -> Outcomes:
        return cls(path, json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})

    def add(self, outcome: Outcome) -> None:
        rest = {name: value for name, value in self._known.items() if name != outcome.name}
        self._known = rest | {outcome.name: {name: v for name, v in asdict(outcome).items() if name != "name"}}
        text = json.dumps(dict(sorted(self._known.items())), indent=2, ensure_ascii=False)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(f"{text}\n", encoding="utf-8")

    def is_seen(self, name: str) -> bool:
        return bool(self._known[name]["red_rounds"] or self._known[name]["red_tests"])

    def line(self, name: str) -> str:
        said = self._known[name]["said"]
        return f"{name}: {f'seen: {said}' if self.is_seen(name) else 'NOT SEEN'}"

    def table(self) -> str:
        lines = ["| hole put back | rounds, red | tests, red | the first said |", "|---|---:|---:|---|"]
        for _, outcome in sorted(self._known.items()):
            rounds = f"{outcome['rounds']}, {outcome['red_rounds']}" if outcome["rounds"] else "-"
            tests = f"{outcome['tests']}, {outcome['red_tests']}" if outcome["tests"] else "-"
            said = outcome["said"].replace("|", "/")
            lines.append(f"| {outcome['hole']} | {rounds} | {tests} | {said} |")
        return "\n".join(lines)
