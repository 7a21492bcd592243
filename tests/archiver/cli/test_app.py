"""Output and exit codes of commands."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.cli.commands import PURPOSES

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


def test_the_help_lists_commands_by_purpose() -> None:
    text = RUNNER.invoke(app, ["--help"]).output
    places = [text.index(f"\n{purpose}:\n") for purpose in PURPOSES]
    assert places == sorted(places)
    assert text.index("\nRemove:\n") < text.index("\n  erase ") < text.index("\nServe:\n")
    listed = [name for names in PURPOSES.values() for name in names]
    assert sorted(listed) == sorted({words[0] for words in COMMANDS})


def test_a_misspelt_topic_gets_a_suggestion(config: Path) -> None:
    done = RUNNER.invoke(app, ["verify", "ordres", "--config", str(config), "--no-json"])
    assert done.exit_code == 2
    assert "speaks for this topic; did you mean 'orders'?" in done.stderr


def test_a_missing_configuration_is_named_and_exits_with_2(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["archive", "--config", str(tmp_path / "nowhere.toml")])
    assert done.exit_code == 2
    assert "ConfigError" in done.stderr
    assert "nowhere.toml" in done.stderr


def test_errors_are_json_where_json_is_asked_for(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["archive", "--json", "--config", str(tmp_path / "nowhere.toml")])
    line = json.loads(done.stderr)
    assert (line["event"], line["error"]["kind"], line["error"]["retryable"]) == ("error", "ConfigError", False)
    assert line["error"]["context"] == {"file": str(tmp_path / "nowhere.toml")}


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))
SPEAK_TEXT = {("demo",)}
ARGUMENTS = {"topic": "orders", "topics": "orders", "target": "copy", "group": "readers", "name": "jane"}
MUST_SAY = {
    ("abandon",): ("--yes",),
    ("erase",): ("--where", "key = 'jane'", "--yes"),
    ("groups", "describe"): ("readers",),
    ("groups", "delete"): ("readers", "--yes"),
    ("users", "remove"): ("--yes",),
    ("schema", "approve"): ("--yes",),
    ("groups", "reset"): ("--to-earliest",),
    ("metadata", "set"): ("case=12", "--key", "jane"),
    ("metadata", "delete"): ("case", "--key", "jane"),
}
"""Options without which a command can't tell what is asked of it."""


def invocation(words: tuple[str, ...], config: Path) -> list[str]:
    command = COMMANDS[words]
    asked = [param.name for param in command.params if param.param_type_name == "argument" and param.nargs == 1]
    given = [ARGUMENTS[action] for action in asked if action in ARGUMENTS]
    return [*words, *given, *MUST_SAY.get(words, ()), "--config", str(config)]


CONFIGURED = [words for words, command in COMMANDS.items() if any("--config" in param.opts for param in command.params)]


@pytest.mark.parametrize("words", [words for words in CONFIGURED if words != ("init",)], ids=" ".join)
def test_every_command_exits_with_2_without_a_configuration(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = RUNNER.invoke(app, invocation(words, tmp_path / "nowhere.toml"))
    assert done.exit_code == 2
    assert "nowhere.toml" in done.stderr


NEED_A_JOURNAL = {("journal", "sum"), *(("audit", action) for action in ("show", "check", "checkpoint", "export"))}
NEED_A_PASSWORD = {("users", "add"), ("users", "password")}
STOPPED_BEFORE_SERVERS = {("init",), ("check",), ("reprocess",), ("hold",), *NEED_A_JOURNAL, *NEED_A_PASSWORD}
"""Three need other arguments; a topic without a schema can't be decoded again; without a journal there is neither a
trail nor a sum."""


@pytest.mark.parametrize("words", [words for words in CONFIGURED if words not in STOPPED_BEFORE_SERVERS], ids=" ".join)
def test_every_command_exits_with_1_if_its_servers_are_away(
    config: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    asked = invocation(words, config)
    if words in {("serve", "flight"), ("abandon",)}:
        flight = f'source = "flight"\npartitions = 1\n[flight]\nwal = "{tmp_path}"\n'
        config.write_text(UNREACHABLE + flight)
    if words[0] == "groups":  # these connect to the archive's server, with options of their own
        hasty = tmp_path / "hasty.properties"
        hasty.write_text("socket.timeout.ms=1000\nsocket.connection.setup.timeout.ms=1000\n")
        asked += ["--kafka-options", str(hasty)]
    done = RUNNER.invoke(app, asked)
    assert done.exit_code == 1, done.output
    assert "hunter2" not in done.output


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_exits_with_2_for_an_unknown_option(words: tuple[str, ...]) -> None:
    assert RUNNER.invoke(app, [*words, "--no-such-option"]).exit_code == 2


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_lets_choose_json(words: tuple[str, ...]) -> None:
    options = {option for param in COMMANDS[words].params for option in (*param.opts, *param.secondary_opts)}
    assert ({"--json", "--no-json"} <= options) is (words not in SPEAK_TEXT)


FORMS = [
    ({}, [], False),
    ({}, ["--json"], True),
    ({"ARCHIVER_OUTPUT": "text"}, [], False),
    ({"ARCHIVER_OUTPUT": "json"}, [], True),
    ({"ARCHIVER_OUTPUT": "json"}, ["--no-json"], False),
]
"""The environment, the options, and whether output is JSON then: off a terminal as on it."""


@pytest.fixture
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARCHIVER_OUTPUT")


@pytest.mark.usefixtures("no_variable")
@pytest.mark.parametrize("words", [words for words in CONFIGURED if words != ("init",)], ids=" ".join)
def test_every_command_prints_text_unless_json_is_chosen(tmp_path: Path, words: tuple[str, ...]) -> None:
    invoked = invocation(words, tmp_path / "nowhere.toml")
    assert not is_json(RUNNER.invoke(app, invoked).stderr)
    assert json.loads(RUNNER.invoke(app, [*invoked, "--json"]).stderr)["event"] == "error"


@pytest.mark.usefixtures("no_variable")
@pytest.mark.parametrize(("variables", "options", "expected"), FORMS)
def test_the_variable_chooses_and_the_option_overrides_it(
    tmp_path: Path, variables: dict[str, str], options: list[str], *, expected: bool
) -> None:
    for command in ("archive", "status"):
        nowhere = [command, "--config", str(tmp_path / "nowhere.toml")]
        assert is_json(RUNNER.invoke(app, [*nowhere, *options], env=variables).stderr) is expected


@pytest.mark.usefixtures("no_variable")
@pytest.mark.parametrize(("variables", "options", "expected"), FORMS)
def test_the_stack_prints_text_unless_json_is_chosen(
    tmp_path: Path, variables: dict[str, str], options: list[str], *, expected: bool
) -> None:
    done = RUNNER.invoke(app, ["local", "status", "--dir", str(tmp_path), *options], env=variables)
    assert done.exit_code == 1
    assert done.stdout.startswith("{") is expected


def test_an_unknown_form_of_output_is_refused_before_any_work(tmp_path: Path) -> None:
    nowhere = ["status", "--config", str(tmp_path / "nowhere.toml")]
    done = RUNNER.invoke(app, nowhere, env={"ARCHIVER_OUTPUT": "yaml"})
    assert done.exit_code == 2
    assert "ARCHIVER_OUTPUT is 'yaml': set it to text or json" in done.stderr


@pytest.mark.usefixtures("no_variable")
@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("command", ["archive", "status"])
def test_a_terminal_changes_no_form(tmp_path: Path, command: str, options: list[str]) -> None:
    nowhere = [command, "--config", str(tmp_path / "nowhere.toml"), *options]
    ours, theirs = os.openpty()
    try:
        run = [sys.executable, "-c", "from archiver.cli import main; main()", *nowhere]
        done = subprocess.run(run, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert is_json(done.stderr) is ("--json" in options)


@pytest.mark.parametrize("command", [["status"], ["reconcile"], ["check", "--no-spark"]])
def test_ctrl_c_exits_with_130_in_other_commands_too(config: Path, command: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        text = config.read_text().replace("127.0.0.1:1", f"127.0.0.1:{port}")
        config.write_text(text.replace(" = 1000", " = 60000"))
        run = [sys.executable, "-c", "from archiver.cli import main; main()", *command, "--config", str(config)]
        with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            silent.settimeout(60)
            connection = silent.accept()[0]
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
            connection.close()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors


def is_json(text: str) -> bool:
    assert "nowhere.toml" in text
    return text.startswith("{")


def test_unreachable_broker_is_named_before_any_work(config: Path) -> None:
    done = RUNNER.invoke(app, ["archive", "--config", str(config)])
    assert done.exit_code == 1
    assert "BrokerUnavailable" in done.stderr
    assert "127.0.0.1:1" in done.stderr
    assert "hunter2" not in done.output


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"ARCHIVER__ARCHIVE__SPOOL": "/proc/spool"}, "archive.spool"),
        ({"ARCHIVER__REGISTRY__DSN": "nonsense"}, "dsn cannot be read"),
        ({"ARCHIVER__REGISTRY__DSN": "postgresql://me@host:port/archiver"}, "port: port"),
        ({"ARCHIVER__SPARK__master": "locl[2]"}, "no Spark master"),
        ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME leads to no Java"),
        ({"ARCHIVER__KAFKA__GROUP_ID": "me"}, "group.id is not supported"),
        ({"ARCHIVER__TOPICS__ORDERS__VALUE__FORMAT": "protobuf"}, "topics.orders.value"),
    ],
)
@pytest.mark.parametrize("mode", ["--once", "--every=60s"])
def test_machine_limits_are_reported_before_any_request(
    config: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str, mode: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = RUNNER.invoke(app, ["archive", mode, "--no-json", "--config", str(config)])
    assert done.exit_code == 2, done.stderr
    assert message in done.stderr
    assert "BrokerUnavailable" not in done.stderr
    assert "\tat " not in done.stderr


def test_unreadable_schema_stops_a_job_without_other_topics(config: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.proto").write_text("message {")
    value = '{ format = "protobuf", message = "M", proto = "broken.proto" }'
    config.write_text(UNREACHABLE + f"value = {value}\n")
    alone = RUNNER.invoke(app, ["archive", "--config", str(config)])
    assert (alone.exit_code, "broken.proto" in alone.stderr) == (2, True)
    config.write_text(config.read_text() + "[topics.others]\n")
    beside = RUNNER.invoke(app, ["archive", "--config", str(config)])
    assert (beside.exit_code, "BrokerUnavailable" in beside.stderr) == (1, True)
    named = RUNNER.invoke(app, ["archive", "orders", "--config", str(config)])
    assert named.exit_code == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_repeating_job_logs_waits_and_exits_by_signal(config: Path, number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-c", "from archiver.cli import main; main()"]
    command += ["archive", "--every", "1s", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        waiting = json.loads(job.stdout.readline())
        job.send_signal(number)
        job.communicate(timeout=60)
    assert (waiting["event"], waiting["on"], waiting["error"]["kind"]) == ("waiting", "Kafka", "BrokerUnavailable")
    assert job.returncode == code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["archive", "--once", "--every", "60s"], "--once or --every"),
        (["archive", "--every", "soon"], "not a duration"),
        (["archive", "--every", "60"], "--every: 60 has no unit: 1m is what it meant until now"),
        (["compact", "--max-size", "20"], "--max-size: 20 has no unit: 20B is what it meant until now"),
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
    assert re.fullmatch(r"archiver \d+\.\d+\.\d+", done.stdout.splitlines()[0])
