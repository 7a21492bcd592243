"""A stack's state file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from archiver.errors import LocalStackError
from archiver.local import state
from archiver.local.process import ProcessMark
from archiver.local.state import StateFile


def test_it_comes_back_as_it_was(tmp_path: Path):
    mark = ProcessMark(pid=1, started=2.5, program="java")
    saved = state.draw().with_ports({"kafka": 15_000}).with_process("kafka", mark)
    state.save(tmp_path, saved)
    assert state.load(tmp_path) == saved


def test_only_its_owner_reads_it(tmp_path: Path):
    state.save(tmp_path, state.draw())
    assert stat.S_IMODE((tmp_path / state.FILE_NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [state.FILE_NAME]


def test_secrets_differ_by_stack_and_do_not_show():
    first, second = state.draw(), state.draw()
    assert first.postgres_password != second.postgres_password
    assert first.secret_key != second.secret_key
    assert first.secret_key not in repr(first)
    assert first.postgres_password not in repr(first)


def test_cluster_ids_are_what_kafka_takes():
    drawn = [state.draw().cluster_id for _ in range(2_000)]
    assert all(len(cluster_id) == 22 and not cluster_id.startswith("-") for cluster_id in drawn)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 2}', '{"version": 1, "processes": 3}'])
def test_a_broken_file_is_named(tmp_path: Path, text: str):
    (tmp_path / state.FILE_NAME).write_text(text)
    with pytest.raises(LocalStackError, match=r"stack\.json"):
        state.load(tmp_path)


def test_every_change_is_on_disk(tmp_path: Path):
    file = StateFile(tmp_path)
    file.change(lambda stored: stored.with_ports({"kafka": 15_001}))
    assert StateFile(tmp_path).current == file.current
    file.change(lambda stored: stored.with_process("kafka", None))
    assert file.current.processes == {}
