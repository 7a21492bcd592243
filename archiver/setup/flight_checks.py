"""Checks the folder of the write-ahead logs, and columns of keys."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Final

from archiver.config import Config
from archiver.errors import ConfigError
from archiver.intake.row_encoding import check_key_column
from archiver.setup.findings import CheckOutcome, Finding, failure
from archiver.setup.read_schemas import read_schemas

FLIGHT: Final = "Flight"
_GIBIBYTE: Final = 1 << 30


def look_at_flight(config: Config) -> Iterator[Finding]:
    """Check that the folder is usable and has room. Makes nothing."""
    topics, root = config.flight_topics, config.flight.wal
    if not topics:
        return
    if root is None:
        yield failure(FLIGHT, no_folder())
        return
    parent = next(path for path in (root, *root.parents) if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        reason = "the folder of the write-ahead log can't be used: it is no folder, or this user may not write to it"
        yield failure(FLIGHT, ConfigError(reason, key="flight.wal", path=str(parent)))
        return
    room, free = config.flight.wal_size * len(topics), shutil.disk_usage(parent).free
    for topic, _, assigned in read_schemas(config, [topic for topic in topics if topic.key_column is not None]):
        try:
            check_key_column(topic, assigned.row)
        except ConfigError as error:
            yield failure(FLIGHT, error, f"topic {topic.name}")
    noun = "log" if len(topics) == 1 else "logs"
    detail = (
        f"{root}, {len(topics):,} {noun}: may use {room / _GIBIBYTE:,.1f} GiB, and {free / _GIBIBYTE:,.1f} GiB are free"
    )
    if free >= room:
        yield Finding(part=FLIGHT, detail=detail)
    else:
        advice = ". Give it room, or set a smaller wal_size in [flight]"
        yield Finding(part=FLIGHT, outcome=CheckOutcome.WARNING, detail=detail + advice)


def no_folder() -> ConfigError:
    return ConfigError(
        "the write-ahead log needs a folder on a disk that stays, such as /var/lib/archiver/wal", key="flight.wal"
    )
