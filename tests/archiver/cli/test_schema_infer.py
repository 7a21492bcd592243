"""`archiver schema infer --from FILE`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from archiver.cli.app import app


def infer(*arguments: str | Path, text: bool = True) -> Result:
    environment = {"ARCHIVER_OUTPUT": "text" if text else "json"}
    return CliRunner().invoke(app, ["schema", "infer", *map(str, arguments)], env=environment)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "clicks.ndjson"
    file.write_bytes(b'{"id":1,"n":null}\r\n\n{"id":2}\n{"id":"three"}\n')
    return file


def test_schema_goes_to_standard_output(lines: Path) -> None:
    done = infer("--from", lines)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["title"] == "clicks"
    assert json.loads(done.stdout)["properties"] == {"id": {"type": ["integer", "string"]}}
    assert done.stderr.splitlines() == [
        "3 values sampled, 0 % of them would be kept raw.",
        "warning: fewer than 10,000 values: later ones may have other members and types",
        "  id: a column for each type (2 integer, 1 string)",
        "  n: no column yet, because it was always null or empty; its values are in `__unrecognized__`",
    ]


def test_schema_is_written_and_extended(lines: Path, tmp_path: Path) -> None:
    file = tmp_path / "click.schema.json"
    done = infer("--from", lines, "--records", "1", "--output", file)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith(f"Wrote {file}. 1 value sampled, 0 % of them would be kept raw.")
    lines.write_bytes(b'{"more":true,"id":3}\nnot json\n')
    done = infer("--from", lines, "--base", file)
    assert list(json.loads(done.stdout)["properties"].items()) == [
        ("id", {"type": "integer"}),
        ("more", {"type": "boolean"}),
    ]
    assert "50.00 % of them would be kept raw" in done.stderr
    assert "warning: kept raw: 1 bad_json" in done.stderr
    answer = json.loads(infer("--from", lines, text=False).stdout)
    assert (answer["event"], answer["sampled"], answer["kept_raw"]) == ("schema_inferred", 2, 1)
    assert json.loads(answer["schema"])["properties"].keys() == {"more", "id"}


def test_a_byte_order_mark_is_no_part_of_the_first_value(lines: Path) -> None:
    lines.write_text('{"id":3}\n', encoding="utf-8-sig")
    done = infer("--from", lines)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["properties"] == {"id": {"type": "integer"}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name either a topic, or a file of values with --from"),
        (("clicks", "--from", "x"), "name either a topic, or a file of values with --from"),
        (("--from", "/nowhere"), "the file can't be read: No such file or directory"),
    ],
)
def test_bad_options(arguments: tuple[str, ...], message: str) -> None:
    done = infer(*arguments)
    assert done.exit_code != 0
    assert message in done.stderr


def test_bad_files(lines: Path, tmp_path: Path) -> None:
    assert "the schema can't be written: Is a directory" in infer("--from", lines, "-o", tmp_path).stderr
    assert "there is no such schema file" in infer("--from", lines, "--base", tmp_path / "no.json").stderr
