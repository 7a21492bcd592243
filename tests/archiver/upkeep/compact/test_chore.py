"""Compaction chores never stop the job."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from archiver.config import load_config
from archiver.upkeep.compact.chore import compaction
from archiver.upkeep.compact.job import Compact
from tests.support.maintenance.chore_states import ChoreTurns


@pytest.mark.parametrize("fault", [ValueError("nobody foresaw this"), MemoryError()])
def test_a_fault_nobody_foresaw_does_not_stop_the_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    path = tmp_path / "archiver.toml"
    path.write_text(
        '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n[catalog]\nuri = "http://127.0.0.1:1"\n'
        '[registry]\ndsn = "postgresql://127.0.0.1:1/none"\n[topics.clicks]\n[topics.orders]\ncompact = "auto"\n'
    )
    runs: list[str] = []

    class Failing(Compact):
        def run(self) -> NoReturn:
            runs.extend(self._topics)
            raise fault

    turns = ChoreTurns((compaction(load_config(path, {}), job_of=Failing),))
    turns.run("clicks", "orders")
    turns.run("clicks", "orders")
    assert runs == ["orders"], "clicks isn't to be compacted, and orders rests after a failure"
    assert "compaction of orders failed; archiving continues" in caplog.text
    assert type(fault).__name__ in caplog.text
