"""The settings on docs/clients.md for Go, JavaScript and Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clients.documented import block, filled, read_in_spark
from tests.support.clients.documented_programs import PROGRAMS, printed, program
from tests.support.clients.documented_servers import RECORDS, VALUES, DocumentedServers, documented_servers
from tests.support.clients.programs import ToolchainMissing
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def served(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentedServers]:
    with documented_servers(stack, tmp_path_factory.mktemp("certificates")) as running:
        yield running


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize(("mark", "is_secured"), list(PROGRAMS))
def test_programs_read_every_record(served: DocumentedServers, scratch: Path, mark: str, is_secured: bool) -> None:
    source = program(mark, block(mark, secured=is_secured).code, RECORDS, PROGRAMS[mark, is_secured])
    try:
        values = printed(mark, filled(source, served.place(secured=is_secured)), scratch, served.folder)
    except ToolchainMissing as error:
        pytest.skip(str(error))
    assert sorted(values) == VALUES


def test_sparks_options(served: DocumentedServers) -> None:
    """The user may use only groups `team-…`; Spark names its own otherwise, and needs none."""
    programs = [filled(block("spark", secured=item).code, served.place(secured=item)) for item in (False, True)]
    assert [sorted(item) for item in read_in_spark(programs, served.folder)] == [VALUES, VALUES]
