"""Outcomes of rounds, a line of JSON each."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXACTLY_ONCE = "exactly once"
WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    number: int
    topic: int
    faults: tuple[dict[str, Any], ...]
    jobs: tuple[str, ...]
    records: int
    digest: str
    seconds: float
    anomalies: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "topic": self.topic,
            "faults": list(self.faults),
            "jobs": list(self.jobs),
            "outcome": WRONG if self.anomalies else EXACTLY_ONCE,
            "records": self.records,
            "digest": self.digest,
            "seconds": self.seconds,
        } | ({"anomalies": list(self.anomalies)} if self.anomalies else {})


class Results:
    def __init__(self, path: Path, seed: int, rounds: list[dict[str, Any]]) -> None:
        self._path = path
        self.seed = seed
        self.rounds = rounds

    @classmethod
    def open(cls, path: Path, *, seed: int, resume: bool) -> Results:
        """Raise ValueError if the file is another seed's."""
        if not resume or not path.exists():
            return cls(path, seed, [])
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["seed"] != seed:
            raise ValueError(
                f"{path} holds results of seed {content['seed']}: give --seed {content['seed']}, or another file"
            )
        return cls(path, seed, content["rounds"])

    def add(self, result: RoundResult) -> None:
        """Keep a round, atomically."""
        self.rounds.append(result.to_json())
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        fresh.write_text(self.text(), encoding="utf-8")
        fresh.replace(self._path)

    def text(self) -> str:
        head = {"seed": self.seed, **self.totals()}
        lines = ",\n".join(f"    {json.dumps(round_)}" for round_ in self.rounds)
        return json.dumps(head, indent=2)[:-2] + f',\n  "rounds": [\n{lines}\n  ]\n}}\n'

    def totals(self) -> dict[str, Any]:
        faults = [fault for round_ in self.rounds for fault in round_["faults"]]
        return {
            "total_rounds": len(self.rounds),
            "faults": len(faults),
            "struck": sum(fault["struck"] for fault in faults),
            "wrong": sum(round_["outcome"] == WRONG for round_ in self.rounds),
            "topics": len({round_["topic"] for round_ in self.rounds}),
            "records": sum(round_["records"] for round_ in self.rounds),
        }

    def table(self) -> str:
        by_kind: dict[str, Counter[str]] = defaultdict(Counter)
        for round_ in self.rounds:
            for fault in round_["faults"]:
                counts = by_kind[fault["kind"]]
                counts["faults"] += 1
                counts["struck"] += fault["struck"]
                counts["wrong"] += round_["outcome"] == WRONG
        lines = ["| fault | times | struck | wrong |", "|---|---:|---:|---:|"]
        lines += [f"| {kind} | {n['faults']} | {n['struck']} | {n['wrong']} |" for kind, n in sorted(by_kind.items())]
        return "\n".join(lines)
