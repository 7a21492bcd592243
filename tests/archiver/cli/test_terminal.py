"""Commands in real terminals, and without."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from archiver.cli.app import app
from tests.support.terminal.pseudo_terminal import ARCHIVER, Seen, run, run_elsewhere

WIDTHS = [80, 50]
MINIMAL = """
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
"socket.connection.setup.timeout.ms" = 700
[catalog]
uri = "http://127.0.0.1:1"
[registry]
dsn = "postgresql://nobody:hunter2@127.0.0.1:1/nothing"
[archive]
spool = "SPOOL"
"""


def config(tmp_path: Path, text: str = "[topics.orders]\n") -> dict[str, str]:
    path = tmp_path / "archiver.toml"
    path.write_text(MINIMAL.replace("SPOOL", str(tmp_path / "spool")) + text)
    return {"ARCHIVER_CONFIG": str(path)}


def commands() -> Iterator[list[str]]:
    def below(command: object, path: list[str]) -> Iterator[list[str]]:
        yield path
        for name, subcommand in getattr(command, "commands", {}).items():
            yield from below(subcommand, [*path, name])

    yield from below(typer.main.get_command(app), [])


def archiver(*arguments: str, columns: int, environment: dict[str, str] | None = None) -> Seen:
    return run([*ARCHIVER, *arguments], columns=columns, environment=environment)


@pytest.mark.parametrize("columns", WIDTHS)
def test_help_is_whole(columns: int) -> None:
    program = f"""
from archiver.cli.app import app
for command in {list(commands())!r}:
    app([*command, "--help"], prog_name="archiver", standalone_mode=False)"""
    seen = run([sys.executable, "-c", program], columns=columns)
    assert seen.exit_code == 0, seen.text
    assert seen.text.count("Usage: archiver") == len(list(commands()))
    assert "Default: [archive] orphan_grace" in seen.flat
    assert "from a table by a rollback, a DELETE or an overwrite." in seen.flat  # the list of commands, uncut
    assert not re.search(r"\w(…|\.\.\.)$", seen.text, re.MULTILINE)
    assert max(map(len, seen.screen.lines)) <= columns


@pytest.mark.parametrize("command", [command for command in commands() if len(command) > 0], ids=" ".join)
def test_every_command_can_be_verbose(command: list[str]) -> None:
    target = typer.main.get_command(app)
    for name in command:
        target = target.commands[name]  # type: ignore[attr-defined]
    is_group = hasattr(target, "commands")
    assert is_group or any("--verbose" in param.opts for param in target.params)


@pytest.mark.parametrize("columns", WIDTHS)
def test_mistakes_in_the_configuration_are_shown_whole(tmp_path: Path, columns: int) -> None:
    environment = config(tmp_path, '[topics.metrics.cpu]\npartition_by = "day"\n[topics.orders]\nuint64 = "big"')
    seen = archiver("archive", columns=columns, environment=environment)
    assert seen.exit_code == 2
    assert 'quote its name: [topics."metrics.cpu"]' in seen.flat
    off = run_elsewhere([*ARCHIVER, "archive", "--no-json"], environment)
    assert off.returncode == 2
    assert 'quote its name: [topics."metrics.cpu"]' in off.stderr
    assert "\x1b" not in off.stderr


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_wrong_broker_is_told_once(tmp_path: Path, columns: int) -> None:
    seen = archiver("archive", columns=columns, environment=config(tmp_path))
    assert seen.exit_code == 1
    assert seen.text.startswith("BrokerUnavailable: No broker answers.")
    assert "127.0.0.1:1:" in seen.flat
    for word in ("ERROR", "WARNING", "INFO", "kafka.net", "Traceback", "hunter2"):
        assert word not in seen.text


@pytest.mark.parametrize("options", [[], ["--json"], ["--no-json"]])
def test_a_wrong_broker_is_told_once_off_a_terminal(tmp_path: Path, options: list[str]) -> None:
    done = run_elsewhere([*ARCHIVER, "archive", *options], config(tmp_path))
    assert done.returncode == 1
    assert done.stdout == ""
    if options != ["--json"]:
        assert done.stderr.startswith("BrokerUnavailable: No broker answers.")
        assert "kafka.net" not in done.stderr
    else:
        (line,) = map(json.loads, done.stderr.splitlines())
        assert line["error"]["kind"] == "BrokerUnavailable"


def test_other_libraries_and_tracebacks_are_heard_if_asked_for(tmp_path: Path) -> None:
    seen = archiver("archive", "--verbose", columns=120, environment=config(tmp_path))
    assert re.search(r"^(ERROR|WARNING) kafka\.", seen.text, re.MULTILINE)
    assert "Traceback" in seen.text
    assert "BrokerUnavailable: No broker answers." in seen.text
    assert "hunter2" not in seen.text


@pytest.mark.parametrize("columns", WIDTHS)
def test_versions(columns: int) -> None:
    seen = archiver("--version", columns=columns)
    assert seen.screen.lines[0].startswith("archiver ")
    for part in ("Python", "PySpark", "PyArrow", "PyIceberg", "Kafka", "PostgreSQL"):
        assert re.search(rf"(?m)^  {part} +\d+\.\d+", seen.text), part
    assert run_elsewhere([*ARCHIVER, "--version"]).stdout.split() == seen.text.split()


def test_the_variable_names_the_configuration(tmp_path: Path) -> None:
    done = run_elsewhere([*ARCHIVER, "status"], {"ARCHIVER_CONFIG": str(tmp_path / "elsewhere.toml")})
    assert done.returncode == 2
    assert f"file: {tmp_path / 'elsewhere.toml'}" in done.stderr


def test_a_module_runs_like_the_command() -> None:
    beside = Path(sys.executable).with_name("archiver")
    assert run_elsewhere([str(beside), "--version"]).stdout == run_elsewhere([*ARCHIVER, "--version"]).stdout
    assert "Usage: python -m archiver [OPTIONS]" in run_elsewhere([*ARCHIVER, "--help"]).stdout
