"""What `archiver groups` refuses before it asks a server."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "say where the group shall go on"),
        (["--to-earliest", "--to-latest"], "say where the group shall go on"),
        (["--to-datetime", "2026-01-31T12:00:00"], "no zone"),
        (["--to-datetime", "12"], "takes a time"),
        (["--by-duration", "soon"], "--by-duration"),
        (["--to-earliest", "--partition", "1"], "one --topic"),
        (["--to-earliest", "--partition", "1", "--topic", "a", "--topic", "b"], "one --topic"),
    ],
)
def test_a_reset_says_one_place(options: list[str], told: str) -> None:
    done = CliRunner().invoke(app, ["groups", "reset", "g", *options, "--bootstrap-server", "127.0.0.1:1", "--json"])
    assert done.exit_code == 2
    assert told in done.stderr


def test_a_server_that_is_not_there_is_named(tmp_path: object) -> None:
    options = ["--bootstrap-server", "127.0.0.1:1", "--json", "--kafka-options", f"{tmp_path}/none"]
    done = CliRunner().invoke(app, ["groups", "list", *options])
    assert done.exit_code == 2
    assert "file of options" in done.stderr
