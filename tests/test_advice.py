"""Advice to remove rows, accept a loss or rebuild is safe.

A new message needs an entry with the reason in `tests/vectors/advice.toml`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.support.terminal.advice import Advice, advice_in, strings_with_advice

ROOT = Path(__file__).parents[1]
ENTRIES: list[dict[str, str]] = tomllib.loads((ROOT / "tests/vectors/advice.toml").read_text(encoding="utf-8"))[
    "advice"
]
FOUND = tuple(advice_in(ROOT))
UNSAFE = ("remove them", "Remove them", "or remove it", "remove the old archive")
"""Advice that made obedient operators lose records."""


def texts(source: str) -> list[str]:
    return [entry.text for entry in strings_with_advice(source, "module.py")]


@pytest.mark.parametrize("found", FOUND, ids=lambda advice: f"{advice.file}:{advice.line}")
def test_every_message_has_a_proof(found: Advice) -> None:
    assert any(entry["text"] in found.text for entry in ENTRIES), found


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["text"][:40])
def test_every_entry_is_of_a_message(entry: dict[str, str]) -> None:
    assert any(entry["text"] in advice.text for advice in FOUND)
    assert len(entry["proof"]) > 15


def test_no_message_advises_to_remove_rows() -> None:
    advised = [advice for advice in FOUND if any(text in advice.text for text in UNSAFE)]
    assert [advice.file for advice in advised] == ["archiver/terminal/orphans_screen.py"], advised


@pytest.mark.parametrize(
    "source",
    [
        'raise Error("rows were added: remove them")',
        'raise Error("rows were added; take" " these rows out")',
        'raise Error(f"{count} rows are missing: accept it")',
        'raise Error(f"{count} rows are missing: note them by --accept-lost")',
        'msg = "the registry is behind: rebuild it"',
    ],
)
def test_advice_is_found(source: str) -> None:
    assert len(texts(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""Remove the rows."""',
        'def f():\n    """Accept a loss of rows."""',
        'run("DELETE FROM files")',
        'name = "delete"',
    ],
)
def test_docstrings_statements_and_words_are_no_advice(source: str) -> None:
    assert texts(source) == []
