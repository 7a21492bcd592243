"""`archiver check` of write-ahead logs."""

from __future__ import annotations

from pathlib import Path

from archiver.config import Config, load_config
from archiver.setup.findings import CheckOutcome
from archiver.setup.flight_checks import look_at_flight

BASE = """
[catalog]
uri = "http://127.0.0.1:8181"
[registry]
dsn = "postgresql://archiver@127.0.0.1/archiver"
"""
TOPIC = '[topics.sensors]\nsource = "flight"\npartitions = 1\n'


def config_of(tmp_path: Path, flight: str, topics: str = TOPIC) -> Config:
    file = tmp_path / "archiver.toml"
    kafka = "" if topics else '[kafka]\n"bootstrap.servers" = "127.0.0.1:9092"\n'
    file.write_text(f"{kafka}{BASE}[flight]\n{flight}\n{topics}")
    return load_config(file, {})


def test_a_folder_with_room(tmp_path: Path) -> None:
    (finding,) = look_at_flight(config_of(tmp_path, 'wal = "wal"\nwal_size = "256MiB"'))
    assert finding.outcome is CheckOutcome.OK
    assert finding.detail.startswith(f"{tmp_path}/wal, 1 log: may use 0.2 GiB, and ")
    assert not (tmp_path / "wal").exists()


def test_a_folder_without_room(tmp_path: Path) -> None:
    (finding,) = look_at_flight(config_of(tmp_path, 'wal = "wal"\nwal_size = "1000000GiB"'))
    assert finding.outcome is CheckOutcome.WARNING
    assert finding.detail.endswith("Give it room, or set a smaller wal_size in [flight]")


def test_no_folder(tmp_path: Path) -> None:
    (finding,) = look_at_flight(config_of(tmp_path, ""))
    assert finding.error is not None
    assert "the write-ahead log needs a folder on a disk that stays" in str(finding.error)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "wal").touch()
    (finding,) = look_at_flight(config_of(tmp_path, 'wal = "wal"'))
    assert finding.error is not None
    assert "the folder of the write-ahead log can't be used" in str(finding.error)


def test_without_flight_topics_nothing_is_checked(tmp_path: Path) -> None:
    assert list(look_at_flight(config_of(tmp_path, "", topics=""))) == []


def test_a_column_of_keys_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(
        '{"type": "object", "properties": {"device": {"type": "string"}, "x": {"type": "number"}}}'
    )
    values = 'value = { format = "json", schema = "s.json" }\n'
    (finding,) = look_at_flight(config_of(tmp_path, 'wal = "wal"', f'{TOPIC}key = "device"\n{values}'))
    assert finding.error is None
    for column in ("devise", "x", "__raw__"):
        wrong, _ = look_at_flight(config_of(tmp_path, 'wal = "wal"', f'{TOPIC}key = "{column}"\n{values}'))
        assert wrong.subject == "topic sensors"
        assert "`key` must name a column of the schema at its top" in str(wrong.error)
        assert "device" in str(wrong.error)
