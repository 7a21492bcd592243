"""The patches of mutants."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.fault.mutants.bench import Outcome
from tests.fault.mutants.mutant import TREE, Mutant, mutants, read
from tests.fault.mutants.outcomes import Outcomes
from tests.fault.soak import faults

DOCS = TREE / "docs"


@pytest.mark.parametrize("mutant", mutants(), ids=lambda hole: hole.name)
def test_a_hole_can_be_put_back(mutant: Mutant) -> None:
    try:
        mutant.apply(TREE, only_check=True)
    except subprocess.CalledProcessError as error:
        pytest.fail(f"the code went on without {mutant.patch.name}: make it anew.\n{error.stderr}")
    assert mutant.rounds or mutant.tests, "nothing looks for it"
    assert set(mutant.rounds) <= {argument.__name__ for argument in faults.Fault.__args__}
    assert all((TREE / test.partition("::")[0]).is_file() for test in mutant.tests)


def test_a_patch_is_applied_to_a_copy(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("a = 1\nb = 2\n")
    patch = tmp_path / "b.patch"
    patch.write_text(
        "Hole: b is 3\nRounds: Terminate, Rivals\n\n"
        "--- a/code.py\n+++ b/code.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n"
    )
    mutant = read(patch)
    assert (mutant.name, mutant.hole, mutant.rounds, mutant.tests) == ("b", "b is 3", ("Terminate", "Rivals"), ())
    mutant.apply(tmp_path)
    assert (tmp_path / "code.py").read_text() == "a = 1\nb = 3\n"
    with pytest.raises(subprocess.CalledProcessError):
        mutant.apply(tmp_path)


def outcome(name: str, *, red: int) -> Outcome:
    return Outcome(name=name, hole=f"{name}?", rounds=3, red_rounds=red, tests=0, red_tests=0, said="lost: here | 3")


def test_outcomes_are_kept_and_told(tmp_path: Path) -> None:
    path = tmp_path / "mutants.json"
    first = Outcomes.open(path)
    first.add(outcome("b", red=1))
    first.add(outcome("a", red=0))
    again = Outcomes.open(path)
    assert again.table().splitlines()[2:] == [
        "| a? | 3, 0 | - | lost: here / 3 |",
        "| b? | 3, 1 | - | lost: here / 3 |",
    ]
    assert (again.is_seen("a"), again.is_seen("b")) == (False, True)
    again.add(outcome("a", red=2))
    assert Outcomes.open(path).is_seen("a")


def test_the_documentation_lists_every_hole() -> None:
    page = (DOCS / "faults.md").read_text(encoding="utf-8")
    assert [mutant.hole for mutant in mutants() if f"- {mutant.hole}\n" not in page] == []
