"""Offsets behind a silent registry."""

from __future__ import annotations

import socket
import time
from typing import Any, cast

import pytest

from archiver.serve.nodes import FencedOffsets
from catalog.errors import RegistryUnreachable


def test_silent_registry_delays_offsets_within_its_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        offsets = FencedOffsets(f"postgresql://someone@127.0.0.1:{port}/registry", "c", answers_within=1.0)
        began = time.monotonic()
        with pytest.raises(RegistryUnreachable):
            offsets.load("group")
        assert time.monotonic() - began < 6.0, "libpq waits for two seconds at least"


def test_each_connection_ends_when_the_network_says_nothing() -> None:
    opened: list[dict[str, float]] = []

    class Opened:
        def __init__(self, _: str, **options: float) -> None:
            opened.append(options)
            raise RegistryUnreachable("the registry is away")

    with pytest.raises(RegistryUnreachable):
        FencedOffsets(
            "postgresql://someone@host/registry", "c", answers_within=7.0, connect=cast("Any", Opened)
        ).groups()
    assert opened == [{"answers_within": 7.0}]
