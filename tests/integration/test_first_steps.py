"""docs/first-steps.md, typed in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.terminal.first_steps import NEXT, PAGE, STEPS, Step, page, play, same, shown
from tests.support.terminal.pseudo_terminal import Seen

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

TEXT = PAGE.read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("first-steps") / "lake"


@pytest.fixture(scope="module")
def played(folder: Path) -> list[tuple[Step, Seen]]:
    return list(play(folder))


@pytest.mark.parametrize("number", range(len(STEPS)), ids=lambda number: STEPS[number].command[:40])
def test_a_step_shows_what_the_page_shows(number: int, played: list[tuple[Step, Seen]], folder: Path) -> None:
    step, seen = played[number]
    assert seen.exit_code == 0, seen.text
    now, then = shown(step, seen, folder), part(number).rstrip("\n")
    assert same(now) == same(then)
    if step.command.startswith("python "):  # its numbers are the same each time
        assert now == then


def part(number: int) -> str:
    starts = [TEXT.index(opening(step), 0) for step in STEPS[:1]]
    for step in STEPS[1:]:
        starts.append(TEXT.index(opening(step), starts[-1] + 1))
    ends = [*starts[1:], TEXT.index(f"\n\n{NEXT}")]
    return TEXT[starts[number] : ends[number]]


def opening(step: Step) -> str:
    return step.words or f"```console\n$ {step.command}\n"


def test_the_page_has_nothing_else() -> None:
    rebuilt = page([part(number).rstrip("\n") for number in range(len(STEPS))])
    assert rebuilt == TEXT
