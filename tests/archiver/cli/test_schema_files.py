"""`archiver schema diff` with two files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from schema_mapping.columns.compatibility import CompatibilityRule
from tests.support.schemas.proto_text import compile_text
from tests.support.terminal.pseudo_terminal import ARCHIVER, run

FIRST = "int32 id = 1; string name = 2; N inner = 3;"
INNER = "message N { int64 n = 1; }"


def text(fields: str, *, recursive: bool = False) -> str:
    inner = "message N { int64 n = 1; N again = 2; }" if recursive else INNER
    return f'syntax = "proto3"; package shop; message M {{ {fields} }} {inner}'


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old.proto", tmp_path / "new.proto"
    old.write_text(text(FIRST))
    new.write_text(text(FIRST))
    return old, new


def diff(*arguments: str | Path, message: str = "shop.M") -> Result:
    return CliRunner().invoke(app, ["schema", "diff", "--message", message, *map(str, arguments)])


def broken(old: Path, new: Path, fields: str, *options: str) -> list[str]:
    new.write_text(text(fields))
    done = diff("--from", old, "--to", new, "--check", *options)
    report = json.loads(done.stdout)
    rules = [change["rule"] for change in report["broken"]]
    assert (done.exit_code, report["compatible"]) == (1 if rules else 0, not rules)
    return rules


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        (FIRST, []),
        (FIRST + " bytes more = 4;", []),
        (FIRST.replace("int32", "int64"), []),
        (FIRST.replace("name", "label"), ["renamed"]),
        (FIRST.replace("string name = 2;", ""), ["removed"]),
        (FIRST.replace("int32 id", "string id"), ["replaced"]),
        (FIRST.replace("N inner", "repeated N inner"), ["replaced"]),
    ],
)
def test_the_rules_are_those_of_a_table(files: tuple[Path, Path], fields: str, rules: list[str]) -> None:
    assert broken(*files, fields) == rules


def test_a_rule_may_be_allowed(files: tuple[Path, Path]) -> None:
    removed = FIRST.replace("string name = 2;", "")
    assert broken(*files, removed, "--allow", "removed") == []
    assert broken(*files, removed.replace("id", "key"), "--allow", "removed") == [CompatibilityRule.RENAMED]


def test_a_message_that_is_cut_from_now_on(files: tuple[Path, Path]) -> None:
    old, new = files
    new.write_text(text(FIRST, recursive=True))
    report = json.loads(diff("--from", old, "--to", new).stdout)
    assert [cut.split()[0] for cut in report["cuts"]] == ["val.inner.again"]
    assert (report["from"], report["to"], report["message"]) == (str(old), str(new), "shop.M")


def test_descriptor_sets_and_folders_of_imports(tmp_path: Path, files: tuple[Path, Path]) -> None:
    (tmp_path / "root" / "money").mkdir(parents=True)
    (tmp_path / "root" / "money" / "money.proto").write_text('syntax = "proto3"; message Money { int64 units = 1; }')
    _, new = files
    new.write_text('syntax = "proto3"; package t; import "money/money.proto"; message M { int32 a = 1; Money b = 2; }')
    old = tmp_path / "old.binpb"
    old.write_bytes(compile_text("message M { int32 a = 1; }").descriptor_set)
    done = diff("--from", old, "--to", new, "--import", tmp_path / "root", message="t.M")
    assert {change["column"] for change in json.loads(done.stdout)["changes"]} == {"val.b"}
    assert diff("--from", old, "--to", new, message="t.M").exit_code == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--from", "OLD"],
        ["--to", "NEW"],
        ["orders", "--from", "OLD", "--to", "NEW"],
        ["--from", "OLD", "--to", "NEW", "--key"],
        ["--from", "OLD", "--to", "NEW", "--allow", "removed"],
        ["--from", "OLD", "--to", "GONE"],
        ["--import", "."],
        ["orders", "--import", "."],
        [],
    ],
    ids=" ".join,
)
def test_options_that_make_no_sense_are_refused(files: tuple[Path, Path], options: list[str]) -> None:
    named = {"OLD": str(files[0]), "NEW": str(files[1]), "GONE": str(files[0].with_name("gone.proto"))}
    done = diff(*(named.get(option, option) for option in options))
    assert done.exit_code == 2, done.output
    assert json.loads(done.stderr)["error"]["kind"] == "ConfigError"


def test_the_message_must_be_named(files: tuple[Path, Path]) -> None:
    done = CliRunner().invoke(app, ["schema", "diff", "--from", str(files[0]), "--to", str(files[1])])
    assert done.exit_code == 2
    assert "--message" in done.stderr


@pytest.mark.parametrize("columns", [80, 50])
def test_people_read_it(files: tuple[Path, Path], columns: int) -> None:
    old, new = files
    new.write_text(text(FIRST.replace("name", "label") + " bytes more = 4;"))
    command = [*ARCHIVER, "schema", "diff", "--from", str(old), "--to", str(new), "--message", "shop.M", "--check"]
    seen = run(command, columns=columns)
    assert seen.exit_code == 1
    assert "1 column added, 1 renamed" in seen.flat
    assert re.search(r"~ val.label \(id \d+\) was named name", seen.flat)
    assert "Not compatible:" in seen.flat
    assert "breaks rule renamed: val.label: queries that use the old name fail" in seen.flat
    new.write_text(old.read_text())
    assert "the same schema Compatible: queries of the table go on as before." in run(command, columns=columns).flat
