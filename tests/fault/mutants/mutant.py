"""A mutant: a patch whose header names the tests that must notice it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TREE: Final = Path(__file__).parents[3]
_SUFFIX: Final = ".patch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    patch: Path
    hole: str
    rounds: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.patch.name.removesuffix(_SUFFIX)

    @property
    def needs_servers(self) -> bool:
        return bool(self.rounds) or any(test.startswith(("tests/integration/", "tests/chaos/")) for test in self.tests)

    def apply(self, tree: Path, *, only_check: bool = False) -> None:
        """Raise CalledProcessError if the patch doesn't fit."""
        command = ["git", "apply", "-C1", "--recount", *(["--check"] if only_check else []), str(self.patch)]
        subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True)


def read(patch: Path) -> Mutant:
    """Raise KeyError if the patch lacks its header."""
    head = patch.read_text(encoding="utf-8").partition("\n--- ")[0]
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    return Mutant(
        patch=patch,
        hole=fields["Hole"],
        rounds=tuple(fields["Rounds"].split(", ")) if "Rounds" in fields else (),
        tests=tuple(fields["Tests"].split(", ")) if "Tests" in fields else (),
    )


def mutants() -> tuple[Mutant, ...]:
    return tuple(map(read, sorted(Path(__file__).parent.glob(f"*{_SUFFIX}"))))
