"""The tests of commits, housekeeping and orphans once more, against Iceberg's own REST catalog in Java."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.test_catalog_housekeeping import test_a_table_stays_small_and_whole
from tests.integration.test_catalog_races import *  # noqa: F403
from tests.integration.test_orphans import *  # noqa: F403
from tests.java_catalog import java_catalog
from tests.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.slow]

__all__ = ["test_a_table_stays_small_and_whole"]


@pytest.fixture(scope="module")
def stack(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack with the other catalog."""
    with java_catalog(stack, tmp_path_factory.mktemp("java-catalog")) as judged:
        yield judged
