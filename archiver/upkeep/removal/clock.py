"""The time of removals: no machine's clock alone decides what is old enough to go."""

from __future__ import annotations

import time
from typing import Final

from archiver.errors import ConfigError
from catalog.registry import Registry

MOST_APART_SECONDS: Final = 3_600.0
"""How far this machine's clock may be from Postgres'."""


def confirmed_time(registry: Registry) -> float:
    """The time in seconds since 1970. ConfigError where this machine and Postgres disagree by more than an hour.

    A clock that is ahead would remove records too early, and delete their files in the same run.
    """
    here, there = time.time(), registry.retention.now()
    if abs(here - there) > MOST_APART_SECONDS:
        raise ConfigError(
            "the clocks of this machine and of Postgres' differ by more than an hour; nothing was removed. Set"
            " the wrong one right",
            difference_s=round(here - there),
        )
    return min(here, there)
