"""`archiver schema` over a real registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from typer.testing import CliRunner, Result

from archiver.cli.schema import schema_app
from archiver.config import load_config
from catalog.registry import Registry
from catalog.registry.ledger import DeclaredColumns
from tests.support.schemas.proto_text import compile_text
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

FIRST = "message M { int32 a = 1; // first\n string b = 2; M up = 3; }"
SECOND = "message M { int64 a = 1; string c = 2; M up = 3; bytes d = 4; }"


def run(*arguments: str | Path) -> Result:
    form = [] if "--json" in arguments else ["--no-json"]
    return CliRunner().invoke(schema_app, [*(str(argument) for argument in arguments), *form])


@pytest.fixture
def config(stack: Stack) -> Path:
    return stack.config({"orders": {}})


@pytest.fixture
def archived(config: Path) -> Path:
    loaded = load_config(config)
    with Registry(loaded.registry.dsn) as registry:
        table = loaded.topic("orders").table
        row = registry.topics.register(cluster_id="c", topic="orders", topic_id=UUID(int=1), table=table)
        for text in (FIRST, SECOND):
            registry.ledger.assign(row, DeclaredColumns(key=None, value=compile_text(text)), table=None)
    return config


@pytest.mark.parametrize("command", ["show", "history", "diff"])
def test_a_topic_that_is_not_archived_yet(config: Path, command: str) -> None:
    result = run(command, "orders", "--config", config)
    assert result.exit_code == 1
    assert "not archived yet" in result.stderr
    machine = run(command, "orders", "--config", config, "--json")
    assert json.loads(machine.stderr)["error"]["kind"] == "NotArchived"


def test_a_topic_that_the_configuration_lacks(config: Path) -> None:
    assert run("show", "elsewhere", "--config", config).exit_code == 2


def test_show(archived: Path) -> None:
    result = run("show", "orders", "--config", archived)
    assert result.exit_code == 0
    assert "= 2 c: string  since 1" in result.stdout
    assert "cut: its type is already on the path" in result.stdout
    tree = json.loads(run("show", "orders", "--config", archived, "--json").stdout)
    assert (tree["topic"], tree["version"]) == ("orders", 2)
    assert [column["name"] for column in tree["roots"][1]["columns"]][:4] == ["a", "c", "up", "d"]


def test_history(archived: Path) -> None:
    result = run("history", "orders", "--config", archived)
    assert result.exit_code == 0
    assert "Version 2, first used" in result.stdout
    assert "from int to long: older rows are read as long" in result.stdout
    versions = json.loads(run("history", "orders", "--config", archived, "--json").stdout)["versions"]
    assert [version["version"] for version in versions] == [1, 2]
    assert {change["kind"] for change in versions[1]["changes"]} == {"promoted", "renamed", "added"}
    assert all(change["text"] for change in versions[1]["changes"])


def shown(config: Path) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(run("show", "orders", "--config", config, "--json").stdout)
    del line["time"]
    return line


def test_diff_changes_nothing(archived: Path, tmp_path: Path) -> None:
    file = tmp_path / "next.proto"
    file.write_text(f'syntax = "proto3"; package t; {SECOND.replace("bytes d = 4;", "")}')
    before = shown(archived)
    result = run("diff", "orders", "--descriptors", file, "--config", archived)
    assert result.exit_code == 0
    assert "would become version 3" in result.stdout
    assert "- val.d" in result.stdout
    outcome = json.loads(run("diff", "orders", "--descriptors", file, "--config", archived, "--json").stdout)
    assert [change["kind"] for change in outcome["changes"]] == ["removed"]
    assert shown(archived) == before
    assert run("diff", "orders", "--descriptors", tmp_path / "no.binpb", "--config", archived).exit_code == 2


def test_check_exits_by_the_rules(archived: Path, tmp_path: Path) -> None:
    file = tmp_path / "next.proto"

    def checked(fields: str, *options: str) -> Result:
        file.write_text(f'syntax = "proto3"; package t; message M {{ {fields} }}')
        return run("diff", "orders", "--descriptors", file, "--config", archived, "--check", *options)

    added = "int64 a = 1; string c = 2; M up = 3; bytes d = 4; int32 e = 5;"
    assert checked(added).exit_code == 0
    assert json.loads(checked(added, "--json").stdout)["compatible"] is True
    removed = "int64 a = 1; string c = 2; M up = 3;"
    text = checked(removed)
    assert text.exit_code == 1
    assert "breaks rule removed: val.d" in text.stdout
    machine = checked(removed, "--json")
    document = json.loads(machine.stdout)
    assert (machine.exit_code, document["compatible"], [change["rule"] for change in document["broken"]]) == (
        1,
        False,
        ["removed"],
    )
    assert checked(removed, "--allow", "removed").exit_code == 0
    assert checked(removed, "--allow", "no-such-rule").exit_code == 2
    assert run("diff", "orders", "--config", archived, "--allow", "removed").exit_code == 2
