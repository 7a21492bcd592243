"""Start and end of the process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from archiver.cli.command_line import NAMES
from archiver.cli.process import named

ENDING = """
import sys
import archiver.cli.command_line as line
from archiver.cli import main

class App:
    def __call__(self):
{body}

line.command_line = lambda names: App()
{before}
main()
"""


def ended(body: str, before: str = "", stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    indented = "\n".join(f"        {line}" for line in body.splitlines())
    program = ENDING.format(body=indented, before=before)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, "-c", program],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], NAMES),
        (["--help"], NAMES),
        (["stat"], NAMES),
        (["--version"], ()),
        (["status", "--help"], ("status",)),
        (["groups", "list"], ("groups",)),
    ],
)
def test_only_the_command_that_is_run_is_made(
    arguments: Sequence[str], names: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tuple(named(arguments)) == tuple(names)
    monkeypatch.setenv("_ARCHIVER_COMPLETE", "complete_bash")
    assert tuple(named(arguments)) == NAMES


@pytest.mark.parametrize("code", [0, 1, 2, 130, 256 + 7])
def test_it_leaves_with_the_commands_code_and_all_of_its_output(code: int) -> None:
    done = ended(f"print('x' * 1_000_000)\nsys.stderr.write('y')\nsys.exit({code})")
    assert (done.returncode, len(done.stdout), done.stderr) == (code & 0xFF, 1_000_001, "y")


def test_threads_end_first_and_then_exit_handlers_are_called() -> None:
    done = ended("""import atexit, threading, time
atexit.register(print, "last", flush=False)
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
sys.exit(3)""")
    assert (done.returncode, done.stdout.split()) == (3, ["thread", "last"])


def test_handlers_that_were_there_before_are_called_too() -> None:
    done = ended("sys.exit(3)", before='import atexit; atexit.register(print, "measured")')
    assert (done.returncode, done.stdout) == (3, "measured\n")


def test_modules_are_not_taken_apart() -> None:
    body = """import os
class Module:
    def __del__(self, write=os.write):
        write(1, b"taken apart")
sys.kept = Module()
"""
    assert ended(body + "sys.exit(0)").stdout == ""
    assert ended(body + "sys.exit('a text')").stdout == "taken apart"  # as Python does by itself


def test_output_that_cannot_be_written_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        done = ended("print('lost')\nsys.exit(0)", stdout=full.fileno())
    assert done.returncode == 120
    assert "No space left" in done.stderr


def test_what_nobody_expected_is_shown() -> None:
    done = ended("raise RuntimeError('unforeseen')")
    assert done.returncode == 1
    assert "RuntimeError: unforeseen" in done.stderr


def test_expected_errors_are_printed() -> None:
    done = ended("from archiver.errors import ConfigError\nraise ConfigError('wrong key')")
    assert done.returncode == 2
    assert "wrong key" in done.stderr
    assert "Traceback" not in done.stderr
