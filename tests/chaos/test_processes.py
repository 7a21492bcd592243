"""Results of commands in processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from archiver.errors import ConfigError
from archiver.fault_points import VARIABLE
from tests.chaos.commands import Commands
from tests.chaos.processes import KILLED, said_by_process


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(path=tmp_path / "archiver.toml", topic="orders")


def succeed(commands: Commands) -> None:
    assert VARIABLE not in os.environ


def refuse(commands: Commands) -> None:
    raise ConfigError("no such topic", topic=commands.topic)


def die(commands: Commands) -> None:
    assert os.environ[VARIABLE] == commands.fault
    os.kill(os.getpid(), signal.SIGKILL)


def end(commands: Commands) -> None:
    os.write(2, b"out of memory")
    raise SystemExit(3)


def test_commands_say_how_they_ended(commands: Commands) -> None:
    assert said_by_process(succeed, commands).succeeded
    said = said_by_process(refuse, commands)
    assert (said.succeeded, "no such topic" in str(said)) == (False, True)


def test_killed_commands(commands: Commands) -> None:
    killed = Commands(path=commands.path, topic="orders", fault="before_commit:kill")
    assert said_by_process(die, killed).texts == (KILLED,)


def test_commands_that_end_without_a_word(commands: Commands) -> None:
    with pytest.raises(RuntimeError, match="ended with 3: out of memory"):
        said_by_process(end, commands)
