"""A terminal: text, line ends, cursor moves, erasing, wrapping."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b[=>]|\x1b\(B")

_OTHER_SCREEN = "?1049"
"""The screen beside the ordinary one, for programs that take all of it and give it back."""


def seen(written: str, columns: int) -> str:
    screen = Screen(columns)
    screen.feed(written.replace("\n", "\r\n"))
    return screen.text


class Screen:
    """Unknown sequences are errors."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._lines: list[list[str]] = [[]]
        self._row = 0
        self._column = 0
        self._kept: tuple[list[list[str]], int, int] | None = None

    @property
    def lines(self) -> list[str]:
        return ["".join(line).rstrip() for line in self._lines]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")

    def feed(self, written: str) -> None:
        position = 0
        while position < len(written):
            if result := _SEQUENCE.match(written, position):
                if result[2]:
                    self._control(result[1], result[2])
                position = result.end()
                continue
            self._character(written[position])
            position += 1

    def _character(self, character: str) -> None:
        match character:
            case "\n":
                self._move_to(self._row + 1)
            case "\r":
                self._column = 0
            case "\b":
                self._column = max(0, self._column - 1)
            case "\x07":
                pass
            case _ if character.isprintable():
                self._put(character)
            case _:
                raise AssertionError(f"a terminal shows no {character!r}")

    def _put(self, character: str) -> None:
        if self._column == self.columns:
            self._column = 0
            self._move_to(self._row + 1)
        line = self._lines[self._row]
        line.extend(" " * (self._column + 1 - len(line)))
        line[self._column] = character
        self._column += 1

    def _control(self, numbers: str, letter: str) -> None:
        count = int(numbers) if numbers.isdecimal() else 0
        match letter:
            case "m":
                pass  # colours
            case "h" | "l":
                if numbers == _OTHER_SCREEN:
                    self._change_screens(is_other=letter == "h")
            case "K" | "J":
                self._erase(letter, count)
            case _:
                self._move(letter, count or 1, numbers)

    def _change_screens(self, *, is_other: bool) -> None:
        if is_other:
            self._kept = (self._lines, self._row, self._column)
            self._lines, self._row, self._column = [[]], 0, 0
        elif self._kept is not None:
            (self._lines, self._row, self._column), self._kept = self._kept, None

    def _erase(self, letter: str, count: int) -> None:
        match letter, count:
            case "K", 2:
                self._lines[self._row] = []
            case "K", 0:
                del self._lines[self._row][self._column :]
            case "J", 0:
                del self._lines[self._row][self._column :]
                del self._lines[self._row + 1 :]
            case "J", 2:
                self._lines[:] = [[] for _ in self._lines]
            case _:
                raise AssertionError(f"an unknown sequence: {count}{letter}")

    def _move(self, letter: str, count: int, numbers: str) -> None:
        match letter:
            case "A":
                self._row = max(0, self._row - count)
            case "B":
                self._move_to(self._row + count)
            case "C":
                self._column = min(self.columns, self._column + count)
            case "D":
                self._column = max(0, self._column - count)
            case "G":
                self._column = count - 1
            case "H" if not numbers:
                self._row = self._column = 0
            case _:
                raise AssertionError(f"an unknown sequence: {numbers}{letter}")

    def _move_to(self, row: int) -> None:
        self._row = row
        self._lines.extend([] for _ in range(row + 1 - len(self._lines)))
