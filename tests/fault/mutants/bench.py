"""Tries mutants on a patched copy of the tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from tests.fault.mutants.mutant import TREE, Mutant
from tests.fault.soak.results import WRONG

ROUNDS: Final = 3
"""How many rounds of each kind a mutant is played, at most; the first that is red is enough."""
_SECONDS: Final = 900.0
_LEFT_OUT: Final = (".git", ".venv", "__pycache__", "*.c", ".*_cache", "build", "dist", "node_modules")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    name: str
    hole: str
    rounds: int
    red_rounds: int
    tests: int
    red_tests: int
    said: str


class Bench:
    def __init__(self, scratch: Path, stack: Path) -> None:
        self._scratch = scratch
        self._stack = stack

    def outcome(self, mutant: Mutant) -> Outcome:
        """Raise RuntimeError if the rounds fail without the mutant, or there is no verdict."""
        tree = self._copy(mutant.name)
        mutant.apply(tree)
        try:
            played = {kind: self._play(tree, kind, ROUNDS) for kind in mutant.rounds}
            red_tests, said = self._test(tree, mutant.tests)
        finally:
            shutil.rmtree(tree)
        rounds = [round_ for results in played.values() for round_ in results]
        wrong = [round_ for round_ in rounds if round_["outcome"] == WRONG]
        for kind, results in played.items():
            if results[-1] in wrong and not self._is_sound(kind, len(results)):
                raise RuntimeError(f"rounds of {kind} are wrong without {mutant.name}, too: they show nothing")
        return Outcome(
            name=mutant.name,
            hole=mutant.hole,
            rounds=len(rounds),
            red_rounds=len(wrong),
            tests=len(mutant.tests),
            red_tests=red_tests,
            said=str(wrong[0]["anomalies"][0]).splitlines()[0][:160] if wrong else said,
        )

    def _is_sound(self, kind: str, rounds: int) -> bool:
        return all(round_["outcome"] != WRONG for round_ in self._play(self._sound_tree, kind, rounds))

    @cached_property
    def _sound_tree(self) -> Path:
        return self._copy("as it is")

    def _copy(self, name: str) -> Path:
        tree = self._scratch / name
        shutil.copytree(TREE, tree, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        return tree

    def _play(self, tree: Path, kind: str, most: int) -> list[dict[str, object]]:
        out = self._scratch / f"{tree.name} {kind}.json"
        for count in range(1, most + 1):
            options = ["--only", kind, "--faults", str(count), "--out", str(out), "--stack", str(self._stack)]
            done = self._run(tree, "tests.fault.soak", *options, "--resume")
            if not out.exists():
                raise RuntimeError(f"{tree.name}: no round was played:\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}")
            rounds: list[dict[str, object]] = json.loads(out.read_text(encoding="utf-8"))["rounds"]
            if rounds[-1]["outcome"] == WRONG:
                break
        return rounds[:most]

    def _test(self, tree: Path, tests: tuple[str, ...]) -> tuple[int, str]:
        red, said = 0, ""
        for test in tests:
            done = self._run(tree, "pytest", "-q", "-x", "--tb=line", "-p", "no:cacheprovider", test)
            if done.returncode not in {0, 1}:
                raise RuntimeError(f"{tree.name}: {test} was not run:\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}")
            red += done.returncode
            lines = [line for line in done.stdout.splitlines() if line.startswith(("E ", "FAILED"))]
            said = said or (lines[-1][:160] if lines else "")
        return red, said

    def _run(self, tree: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        ours = {"PYTHONPATH": tree, "PYTHONDONTWRITEBYTECODE": "1", "ARCHIVER_TEST_STACK": self._stack}
        environment = os.environ | {name: str(value) for name, value in ours.items()}
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
