"""Consumers continue at committed offsets with leader epochs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clients import resumed_positions
from tests.support.clients.programs import java_client
from tests.support.clients.resumed_positions import JavaResuming, Resuming, librdkafka

pytestmark = pytest.mark.integration


@pytest.fixture(params=["java", "librdkafka"])
def resume(request: pytest.FixtureRequest) -> Resuming:
    return JavaResuming(java_client()) if request.param == "java" else librdkafka


def test_a_consumer_starts_at_once_inside_the_archive(resume: Resuming, tmp_path: Path) -> None:
    resumed_positions.starts_at_once_inside_the_archive(resume, tmp_path)


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_consumer_beyond_the_end_waits_and_repeats_nothing(resume: Resuming, tmp_path: Path, epoch: int) -> None:
    resumed_positions.waits_beyond_the_end_and_repeats_nothing(resume, tmp_path, epoch)


def test_an_older_epoch_that_ended_is_a_truncation(resume: Resuming, tmp_path: Path) -> None:
    resumed_positions.is_told_of_an_older_epoch_that_ended(resume, tmp_path)
