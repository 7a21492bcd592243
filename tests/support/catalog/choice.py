"""The tests' catalog: ARCHIVER_TEST_CATALOG is `embedded` (default) or `java`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.catalog.java_catalog import java_catalog
from tests.support.servers.stack import Stack

CATALOG = os.environ.get("ARCHIVER_TEST_CATALOG", "embedded")
EACH_CATALOG = ("embedded", pytest.param("java", marks=pytest.mark.slow)) if CATALOG == "embedded" else (CATALOG,)
"""Parameters of a fixture that gives `stack_with` each: the stack's own catalog, and with the slow tests another."""


def of_the_stacks_own_catalog(why: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(CATALOG != "embedded", reason=why)


@contextmanager
def stack_with(catalog: str, stack: Stack, folders: pytest.TempPathFactory) -> Iterator[Stack]:
    if catalog == "embedded":
        yield stack
    else:
        assert catalog == "java", f"there is no catalog {catalog}"
        with java_catalog(stack, folders.mktemp("java-catalog")) as judged:
            yield judged
