"""The schema registry that integration tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.servers.apicurio import apicurio


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a schema registry written by other people: Apicurio, or the one in ARCHIVER_TEST_SCHEMA_REGISTRY."""
    if named := os.environ.get("ARCHIVER_TEST_SCHEMA_REGISTRY"):
        yield named
        return
    with apicurio(tmp_path_factory.mktemp("apicurio")) as url:
        yield url
