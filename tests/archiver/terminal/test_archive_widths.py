"""The archive screen in real terminals."""

from __future__ import annotations

import re
import sys
from functools import cache

import pytest

from tests.support.terminal.pseudo_terminal import Seen, run, run_elsewhere

PLAYED = [sys.executable, "-m", "tests.support.terminal.played_runs"]
NUMBERS = ("123,456,789", "4,321", "84.0 GB", "31.0 GB", "< 0.01 %", "100,005 records/s", "68.0 MB/s", "20 min 34 s")


@cache
def played(columns: int, *, every: bool = False) -> Seen:
    return run([*PLAYED, "--every"] if every else PLAYED, columns=columns)


@pytest.mark.parametrize("columns", [120, 80, 50, 34])
def test_no_number_is_cut_and_no_line_too_long(columns: int) -> None:
    seen = played(columns)
    assert seen.exit_code == 0
    assert all(number in seen.flat for number in NUMBERS)
    assert "…" not in seen.text
    assert max(map(len, seen.screen.lines)) <= columns


@pytest.mark.parametrize("columns", [120, 80, 50, 34])
def test_the_bar_is_whole_and_gone_afterwards(columns: int) -> None:
    seen = played(columns)
    parts = ("Wave 1: 1 task for 1 partition of 1 topic", "987,654 of 123,456,789 offsets", "so far")
    assert any(all(part in " ".join(frame.split()) for part in parts) for frame in seen.frames)
    assert "Wave" not in seen.text
    assert "offsets" not in seen.text


@pytest.mark.parametrize("columns", [80, 50])
def test_the_bar_takes_as_many_lines_as_it_needs(columns: int) -> None:
    title = r".  Wave 1: 1 task for 1 partition of 1 topic\n"
    lines = (
        title + r"   [━╸╺ ]{8,}  987,654 of 123,456,789 offsets  \d:\d\d so far"
        if columns == 80
        else title + r"   [━╸╺ ]{8,}  987,654 of 123,456,789 offsets\n   \d:\d\d so far"
    )
    assert any(re.search(lines, frame) for frame in played(columns).frames)


@pytest.mark.parametrize("columns", [80, 50])
def test_what_stands_in_brackets_is_shown(columns: int) -> None:
    flat = played(columns).flat
    assert "orders-2: ParseHalted: [truncated] at the first value" in flat
    assert "offset: 123456789 code: [truncated]" in flat
    assert "url: http://[::1]:8081" in flat


@pytest.mark.parametrize("columns", [80, 50])
def test_quiet_round_is_one_line_with_the_time(columns: int) -> None:
    seen = played(columns, every=True)
    rounds = re.split(r"(?m)^\d\d:\d\d:\d\d  ", seen.text)
    busy, idle, single, many = (" ".join(line.split()) for line in rounds[-4:])
    assert busy.startswith("123,456,789 records, 84.0 GB read, in 20 min 34 s (100,005 records/s, 68.0 MB/s)")
    assert "Failed (see above): orders-2" in busy
    assert "Nothing new in 1 topic" in busy
    assert idle == "nothing new, 0.2 s"
    assert single == "nothing archived, 1 offset waits for a full file (min_file_size, max_lag), 0.2 s"
    assert many == "nothing archived, 6,000 offsets wait for a full file (min_file_size, max_lag), 0.2 s"
    assert seen.text.count("metrics.cpu.total") == 3  # as it is opened, and in the busy round: its line, its misfits


def test_off_a_terminal_a_topic_is_a_line() -> None:
    done = run_elsewhere(PLAYED)
    assert "\x1b" not in done.stdout + done.stderr
    line = "metrics.cpu.total: 123,456,789 records, 84.0 GB read, 31.0 GB stored in 4,321 files, < 0.01 % kept raw"
    assert f"{line}, 0 failed" in done.stdout.splitlines()


def test_off_a_terminal_a_round_is_a_line_with_the_time_too() -> None:
    *_, last = run_elsewhere([*PLAYED, "--every"]).stdout.splitlines()
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d  nothing archived, 6,000 offsets wait for a full file \(min_file_size, max_lag\), 0.2 s", last
    )


def test_no_colour_where_none_is_wanted() -> None:
    coloured = re.compile(r"\x1b\[[0-9;]*\b(3[0-7]|9[0-7]|38)\b[0-9;]*m")
    assert coloured.search(played(80).written)
    plain = run(PLAYED, columns=80, environment={"NO_COLOR": "1"})
    assert not coloured.search(plain.written)
    assert "123,456,789" in plain.text
