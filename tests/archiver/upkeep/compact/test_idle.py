"""Compaction in the pauses of an archive job: what it leaves alone, and that it never stops the job."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from archiver.config import load_config
from archiver.ingest.idle import IdleTime
from archiver.upkeep.compact.idle import IdleCompaction
from archiver.upkeep.compact.job import Compact


@pytest.mark.parametrize("fault", [ValueError("nobody foresaw this"), MemoryError()])
def test_a_fault_nobody_foresaw_does_not_stop_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    path = tmp_path / "archiver.toml"
    path.write_text(
        '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n[catalog]\nuri = "http://127.0.0.1:1"\n'
        '[registry]\ndsn = "postgresql://127.0.0.1:1/none"\n[topics.orders]\ncompact = "auto"\n'
    )
    runs: list[str] = []

    def fail(self: Compact) -> NoReturn:
        runs.append("orders")
        raise fault

    monkeypatch.setattr(Compact, "run", fail)
    compaction = IdleCompaction(load_config(path, {}))
    idle = IdleTime(topics=("orders",), engine=cast("Any", None), is_over=lambda: False)
    compaction(idle)
    compaction(idle)
    assert runs == ["orders"], "it rests after a failure"
    assert "orders was not compacted, archiving goes on" in caplog.text
    assert type(fault).__name__ in caplog.text
