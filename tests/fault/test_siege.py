"""The numbers of a siege, by members' logs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.fault.siege.__main__ import Noted, pace, second_config
from tests.fault.siege.attacks import attacks, rounds
from tests.fault.siege.member import Positions


def test_a_member_counts_missing_and_repeated_records() -> None:
    positions = Positions({0: 10, 1: 4})
    positions.assign([(0, 0), (1, 0)])
    assert not positions.take(0, 0)
    assert not positions.take(0, 3)
    assert (positions.missing, positions.repeated) == (2, 0)
    assert not positions.take(0, 1)
    assert (positions.missing, positions.repeated) == (2, 3)
    assert [positions.take(1, offset) for offset in range(4)] == [False, False, False, True]
    assert not positions.take(1, 0)
    assert (positions.count, positions.missing, positions.repeated) == (8, 2, 3)


def test_the_first_records_of_a_partition_may_not_be_missing() -> None:
    positions = Positions({0: 10})
    positions.assign([(0, 0)])
    positions.take(0, 4)
    assert positions.missing == 4


def test_pace_counts_the_records_of_a_phase() -> None:
    lines = [Noted.parse(f"{second * 1_000_000_000} {second * 100} 0 0") for second in range(20)]
    logs = {Path("a"): lines, Path("b"): lines}
    assert pace(logs, [("here", 2.0, 6.0), ("there", 8.0, 12.0)], "here") == pytest.approx(200)


def test_each_attack_occurs_in_each_round() -> None:
    names = tuple(attacks("orders"))
    drawn = next(rounds(names, 50, seed=3))
    assert len(drawn) == 50
    assert set(drawn) == set(names)


def test_the_idle_server_serves_the_same_tables(tmp_path: Path) -> None:
    config = tmp_path / "archiver.toml"
    config.write_text('[topics."orders"]\n"table" = "kafka.t"\n[serve]\n"cluster_id" = "siege"\n"refresh" = "1s"\n')
    first = tomllib.loads(config.read_text())
    second = tomllib.loads(second_config(config, tmp_path / "idle.toml").read_text())
    assert second["topics"] == first["topics"]
    assert second["serve"] == {"cluster_id": "idle", "refresh": "1s"}
