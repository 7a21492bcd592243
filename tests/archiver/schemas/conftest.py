"""A schema registry in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.schemas.fake_registry import FakeRegistry, fake_registry


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry
