"""The command line as people and scripts use it: output and exit codes of success and of mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app

RUNNER = CliRunner()
UNREACHABLE = """
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
"socket.connection.setup.timeout.ms" = 1000
[catalog]
uri = "http://127.0.0.1:1"
[registry]
dsn = "postgresql://nobody:hunter2@127.0.0.1:1/nothing"
[topics.orders]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "archiver.toml"
    path.write_text(UNREACHABLE)
    return path


def test_the_commands_are_those_that_work() -> None:
    listed = RUNNER.invoke(app, ["--help"])
    assert listed.exit_code == 0
    for command in ("archive", "demo", "local", "replay", "schema", "status"):
        assert command in listed.output


def test_a_missing_configuration_is_named_and_exits_with_2(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["archive", "--config", str(tmp_path / "nowhere.toml")])
    assert done.exit_code == 2
    assert "ConfigError" in done.stderr
    assert "nowhere.toml" in done.stderr


def test_errors_are_json_where_json_is_asked_for(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["archive", "--json", "--config", str(tmp_path / "nowhere.toml")])
    error = json.loads(done.stderr)
    assert error["error"] == "ConfigError"
    assert error["context"] == {"file": str(tmp_path / "nowhere.toml")}


@pytest.mark.parametrize("command", [["archive"], ["reconcile"], ["reprocess", "orders"], ["orphans"]])
@pytest.mark.parametrize("options", [[], ["--json"], ["--no-json"]])
def test_jobs_speak_json_where_nobody_reads_along(tmp_path: Path, command: list[str], options: list[str]) -> None:
    nowhere = [*command, "--config", str(tmp_path / "nowhere.toml"), *options]
    assert is_json(RUNNER.invoke(app, nowhere).stderr) is ("--no-json" not in options)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_jobs_speak_text_on_a_terminal(tmp_path: Path, options: list[str]) -> None:
    nowhere = ["archive", "--config", str(tmp_path / "nowhere.toml"), *options]
    ours, theirs = os.openpty()
    try:
        run = [sys.executable, "-c", "from archiver.cli import main; main()", *nowhere]
        done = subprocess.run(run, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert is_json(done.stderr) is ("--json" in options)


def is_json(text: str) -> bool:
    assert "nowhere.toml" in text
    return text.startswith("{")


def test_an_unreachable_broker_stops_before_any_work_and_is_named(config: Path) -> None:
    done = RUNNER.invoke(app, ["archive", "--config", str(config)])
    assert done.exit_code == 1
    assert "BrokerUnavailable" in done.stderr
    assert "127.0.0.1:1" in done.stderr
    assert "hunter2" not in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["archive", "--once", "--every", "60s"], "--once or --every"),
        (["archive", "--every", "soon"], "not a duration"),
        (["replay", "orders", "--from", "yesterday"], "neither an offset nor a time"),
        (["replay", "strangers"], "No section of the configuration"),
    ],
)
def test_options_that_make_no_sense_exit_with_2(config: Path, arguments: list[str], message: str) -> None:
    done = RUNNER.invoke(app, [*arguments, "--config", str(config)])
    assert done.exit_code == 2, done.output
    assert message in done.stderr


def test_a_demo_wants_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    done = RUNNER.invoke(app, ["demo", "--dir", str(tmp_path)])
    assert done.exit_code == 2
    assert "empty folder" in done.stderr


def test_the_installed_command_prints_its_version() -> None:
    command = Path(sys.executable).with_name("archiver")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip().count(".") == 2
