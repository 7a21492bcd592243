"""Giving up a log saves readable rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archiver.errors import ConfigError, IntakeError, NotArchived, TopicBusy
from archiver.intake.abandon import AbandonedLog, AbandonLog, AbandonOptions
from archiver.intake.disk import LocalDisk
from archiver.intake.state import IntakeState
from catalog.registry.intake_logs import IntakeLogRow
from tests.support.intake.abandoned import LogRegistry, MemoryTable
from tests.support.intake.batches import batch_of
from tests.support.intake.logs import opened_log, survey_of

LOG = IntakeLogRow(
    wal_id="gone",
    folder="host:/wal/t",
    epoch=3,
    drained=False,
    next_offsets={0: 5},
    reported_at=datetime(2026, 11, 29, tzinfo=UTC),
    silent_seconds=1e6,
)


def agree(_report: AbandonedLog) -> bool:
    return True


def job(
    wal: Path,
    registry: LogRegistry,
    table: MemoryTable,
    *,
    agrees: Callable[[AbandonedLog], bool] = agree,
    until: dict[int, int] | None = None,
    skip: int = 100,
    dry_run: bool = False,
    source: str = "flight",
) -> AbandonLog:
    config: Any = SimpleNamespace(flight=SimpleNamespace(wal=wal))
    topic: Any = SimpleNamespace(name="t", source=source, partitions=2)
    servers: Any = SimpleNamespace(registry=registry)
    in_memory: Any = table
    options = AbandonOptions(until=until or {}, skip=skip, dry_run=dry_run)
    return AbandonLog(config, topic, servers, options=options, agrees=agrees, table=in_memory)


def fill(folder: Path) -> str:
    disk: Any = LocalDisk(folder)
    log = opened_log(disk)
    for number in range(4):
        log.append([batch_of("a", number, {0: [b"row-%d" % number]})])
    log.close()
    wal_id = survey_of(disk).log_id.wal_id
    disk.close()
    return wal_id


def damage(folder: Path, value: bytes) -> None:
    (segment,) = folder.glob("*.wal")
    content = segment.read_bytes()
    segment.write_bytes(content.replace(value, b"?" * len(value)))


def position(registry: LogRegistry, client: str) -> int:
    assert registry.state is not None
    return IntakeState.from_json(registry.state, most_clients=10).clients.position(client).next_batch_id


def test_a_gone_log_is_recorded_as_lost(tmp_path: Path) -> None:
    covered = {"sequence": 9, "next_offsets": {"0": 3}, "clients": {"a": [0, 0, 4, []]}}
    pending = {"sequence": 12, "next_offsets": {"0": 5}, "clients": {"a": [0, 0, 6, []]}}
    registry, table = LogRegistry(replace(LOG, states=[covered, pending])), MemoryTable(ends={0: 3})
    report = job(tmp_path, registry, table).run()
    assert (report.lost_offsets, report.saved_rows, report.in_folder) == (2, 0, False)
    assert table.lost_spans == [(0, 3, 105), (1, 0, 100)]
    assert registry.state is not None
    assert registry.state["next_offsets"] == {"0": 105, "1": 100}
    assert position(registry, "a") == 4  # the batches after it are lost: the client may send them again


def test_what_clients_know_is_lost_too(tmp_path: Path) -> None:
    registry, table = LogRegistry(LOG), MemoryTable(ends={0: 3})
    report = job(tmp_path, registry, table, until={0: 9}, skip=0).run()
    assert report.lost_offsets == 6
    assert table.lost_spans == [(0, 3, 9)]


def test_rows_around_damage_are_saved(tmp_path: Path) -> None:
    wal_id = fill(tmp_path / "t")
    damage(tmp_path / "t", b"row-1")
    registry, table = LogRegistry(replace(LOG, wal_id=wal_id)), MemoryTable()
    report = job(tmp_path, registry, table, skip=10).run()
    assert (report.saved_rows, report.lost_offsets) == (3, 2)
    assert table.rows() == [(0, b"row-0"), (2, b"row-2"), (3, b"row-3")]
    assert table.lost_spans == [(0, 1, 2), (0, 4, 15), (1, 0, 10)]
    assert report.clients == {"a": 4}
    assert position(registry, "a") == 4


def test_a_whole_log_is_not_given_up(tmp_path: Path) -> None:
    wal_id = fill(tmp_path / "t")
    registry = LogRegistry(replace(LOG, wal_id=wal_id, next_offsets={0: 4}))
    with pytest.raises(IntakeError, match="the write-ahead log is whole: nothing need be lost"):
        job(tmp_path, registry, MemoryTable()).run()
    assert registry.state is None


def test_an_older_copy_is_not_whole(tmp_path: Path) -> None:
    wal_id = fill(tmp_path / "t")
    registry, table = LogRegistry(replace(LOG, wal_id=wal_id, next_offsets={0: 6})), MemoryTable()
    report = job(tmp_path, registry, table, skip=0).run()
    assert (report.saved_rows, report.lost_offsets) == (4, 2)
    assert table.lost_spans == [(0, 4, 6)]


def test_another_folder_is_not_read(tmp_path: Path) -> None:
    fill(tmp_path / "t")
    report = job(tmp_path, LogRegistry(LOG), MemoryTable(), skip=0).run()
    assert (report.in_folder, report.saved_rows, report.lost_offsets) == (False, 0, 5)


def test_nothing_changes_without_consent(tmp_path: Path) -> None:
    wal_id = fill(tmp_path / "t")
    damage(tmp_path / "t", b"row-1")
    registry, table = LogRegistry(replace(LOG, wal_id=wal_id)), MemoryTable()
    assert job(tmp_path, registry, table, agrees=lambda _: False).run().dry_run
    assert job(tmp_path, registry, table, dry_run=True).run().lost_offsets == 2
    assert (table.table, registry.state) == ([], None)


@pytest.mark.parametrize(
    ("log", "error", "message"),
    [
        (None, NotArchived, "the topic never had a write-ahead log"),
        (replace(LOG, drained=True), IntakeError, "there is nothing to give up"),
        (replace(LOG, silent_seconds=4.0), TopicBusy, "a server reported 4 seconds ago"),
    ],
)
def test_logs_that_are_not_lost_are_refused(
    tmp_path: Path, log: IntakeLogRow | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        job(tmp_path, LogRegistry(log), MemoryTable()).run()


def test_a_log_that_was_taken_since_is_not_given_up(tmp_path: Path) -> None:
    registry, table = LogRegistry(LOG, is_changed=True), MemoryTable()
    with pytest.raises(TopicBusy, match="a server has taken the log or reported since, and nothing was changed"):
        job(tmp_path, registry, table).run()
    assert (table.table, registry.state) == ([], None)


class _Ended(Exception): ...


@pytest.mark.parametrize("step", ["stage", "staged", "commit", "committed"])
@pytest.mark.parametrize("at", range(8))
def test_a_repeated_command_does_the_same(tmp_path: Path, step: str, at: int) -> None:
    """An interrupted first command changes neither the losses nor the positions of clients."""
    wal_id = fill(tmp_path / "t")
    damage(tmp_path / "t", b"row-1")
    registry, table = LogRegistry(replace(LOG, wal_id=wal_id, next_offsets={0: 6})), MemoryTable()
    steps: list[str] = []

    def end(name: str) -> None:
        if registry.log is not None and registry.log.is_given_up and name == step:
            steps.append(name)
            if len(steps) == at + 1:
                raise _Ended

    table.step = end
    with suppress(_Ended):
        job(tmp_path, registry, table, skip=10).run()
    if registry.state is None:
        job(tmp_path, registry, table, skip=77).run()
    assert table.rows() == [(0, b"row-0"), (2, b"row-2"), (3, b"row-3")]
    assert {offset for partition, *span in table.lost_spans if partition == 0 for offset in range(*span)} == {
        1,
        *range(4, 16),
    }
    assert registry.state is not None
    assert registry.state["next_offsets"] == {"0": 16, "1": 10}
    assert position(registry, "a") == 4


def test_a_repeated_command_keeps_positions(tmp_path: Path) -> None:
    covered = {"sequence": 9, "next_offsets": {"0": 3}, "clients": {"a": [0, 0, 4, []]}}
    pending = {"sequence": 12, "next_offsets": {"0": 5}, "clients": {"a": [0, 0, 6, []]}}
    registry, table = LogRegistry(replace(LOG, states=[covered, pending])), MemoryTable(ends={0: 3})
    registry.drain = refuse  # type: ignore[method-assign]
    with pytest.raises(_Ended):
        job(tmp_path, registry, table).run()
    assert table.lost_spans == [(0, 3, 105), (1, 0, 100)]
    del registry.drain
    report = job(tmp_path, registry, table).run()
    assert (report.lost_offsets, position(registry, "a")) == (0, 4)
    assert table.lost_spans == [(0, 3, 105), (1, 0, 100)]


def refuse(*_: Any, **__: Any) -> bool:
    raise _Ended


def test_a_repeated_command_doubles_no_rows(tmp_path: Path) -> None:
    wal_id = fill(tmp_path / "t")
    registry, table = LogRegistry(replace(LOG, wal_id=wal_id, next_offsets={0: 2})), MemoryTable()
    registry.drain = refuse  # type: ignore[method-assign]
    with pytest.raises(_Ended):
        job(tmp_path / "none", registry, table, skip=0).run()
    del registry.drain
    job(tmp_path, registry, table, skip=0).run()
    assert (table.rows(), table.lost_spans, position(registry, "a")) == ([], [(0, 0, 2)], 0)


def test_bad_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the topic has the partitions 0 to 1"):
        job(tmp_path, LogRegistry(LOG), MemoryTable(), until={2: 5})
    with pytest.raises(ConfigError, match="only topics with source"):
        job(tmp_path, LogRegistry(LOG), MemoryTable(), source="kafka")
