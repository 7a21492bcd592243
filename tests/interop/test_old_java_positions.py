"""Kafka's Java client before 4.0."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.archive.archived_batches import archived
from tests.support.clients import resumed_positions
from tests.support.clients.programs import old_java_client
from tests.support.clients.resumed_positions import JavaResuming
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import ServedLake

pytestmark = pytest.mark.interop


@pytest.fixture
def resume() -> JavaResuming:
    return JavaResuming(old_java_client())


def test_a_consumer_starts_at_once_inside_the_archive(resume: JavaResuming, tmp_path: Path) -> None:
    resumed_positions.starts_at_once_inside_the_archive(resume, tmp_path)


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_consumer_beyond_the_end_waits_and_repeats_nothing(resume: JavaResuming, tmp_path: Path, epoch: int) -> None:
    resumed_positions.waits_beyond_the_end_and_repeats_nothing(resume, tmp_path, epoch)


def test_an_older_epoch_that_ended_is_a_truncation(resume: JavaResuming, tmp_path: Path) -> None:
    resumed_positions.is_told_of_an_older_epoch_that_ended(resume, tmp_path)


def test_a_member_of_the_new_protocol_is_given_its_id(tmp_path: Path) -> None:
    lake = archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)
    with ServedLake(lake) as endpoint:
        address = f"127.0.0.1:{endpoint.port}"
        seen = old_java_client().read_as_member(address, "orders", "readers", 10, protocol="consumer")
        assert seen == [(0, offset) for offset in range(10)]
