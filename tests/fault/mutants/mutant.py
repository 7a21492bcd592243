"""A mutant: a patch with a few lines before it that say what the hole was, and which rounds and tests must see it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TREE: Final = Path(__file__).parents[3]
_SUFFIX: Final = ".patch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """`hole` in words; `rounds` names kinds of faults, `tests` of tests that pytest takes."""

    patch: Path
    hole: str
    rounds: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """The patch's name."""
        return self.patch.name.removesuffix(_SUFFIX)

    @property
    def needs_servers(self) -> bool:
        """Whether anything that looks for it does."""
        return bool(self.rounds) or any(each.startswith(("tests/integration/", "tests/chaos/")) for each in self.tests)

    def apply(self, tree: Path, *, only_check: bool = False) -> None:
        """Put the hole back into a tree; CalledProcessError where the code has gone on without the patch."""
        command = ["git", "apply", "-C1", "--recount", *(["--check"] if only_check else []), str(self.patch)]
        subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True)


def read(patch: Path) -> Mutant:
    """The mutant of a patch; KeyError where it doesn't say what it is."""
    head = patch.read_text(encoding="utf-8").partition("\n--- ")[0]
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    return Mutant(
        patch=patch,
        hole=fields["Hole"],
        rounds=tuple(fields["Rounds"].split(", ")) if "Rounds" in fields else (),
        tests=tuple(fields["Tests"].split(", ")) if "Tests" in fields else (),
    )


def mutants() -> tuple[Mutant, ...]:
    """All of them, by name."""
    return tuple(map(read, sorted(Path(__file__).parent.glob(f"*{_SUFFIX}"))))
