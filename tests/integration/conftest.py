"""The schema registry of the integration tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.servers.apicurio import apicurio


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of Apicurio, or of the registry in ARCHIVER_TEST_SCHEMA_REGISTRY."""
    if named := os.environ.get("ARCHIVER_TEST_SCHEMA_REGISTRY"):
        yield named
        return
    with apicurio(tmp_path_factory.mktemp("apicurio")) as url:
        yield url
