"""Two clocks must agree on age."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from archiver.errors import ConfigError
from archiver.upkeep.removal.purge import MOST_APART_SECONDS, confirmed_time


def registry(ahead: float) -> Any:
    return cast("Any", SimpleNamespace(retention=SimpleNamespace(now=lambda: time.time() + ahead)))


@pytest.mark.parametrize("ahead", [-60.0, 0.0, 60.0])
def test_the_earlier_time_counts(ahead: float) -> None:
    assert confirmed_time(registry(ahead)) == pytest.approx(time.time() + min(0.0, ahead), abs=5.0)


@pytest.mark.parametrize("ahead", [-MOST_APART_SECONDS - 10, MOST_APART_SECONDS + 10])
def test_clocks_that_are_too_far_apart_remove_nothing(ahead: float) -> None:
    with pytest.raises(ConfigError, match="nothing was removed") as caught:
        confirmed_time(registry(ahead))
    assert abs(caught.value.context["difference_s"]) > MOST_APART_SECONDS
