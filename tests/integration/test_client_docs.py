"""Settings on docs/clients.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.archive.documented_queries import read_blocks
from tests.support.clients.documented import (
    AUTHORITY,
    PAGE,
    SECURED,
    block,
    filled,
    read_in_java,
    read_in_python,
    told_by_tools,
)
from tests.support.clients.documented_programs import PROGRAMS
from tests.support.clients.documented_servers import (
    PARTITIONS,
    RECORDS,
    VALUES,
    DocumentedServers,
    documented_servers,
)
from tests.support.servers.stack import Stack, unique

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PYTHON = ("confluent", "kafka_python", "aiokafka")


@pytest.fixture(scope="module")
def served(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentedServers]:
    with documented_servers(stack, tmp_path_factory.mktemp("certificates")) as running:
        yield running


@pytest.fixture
def in_folder(served: DocumentedServers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder with the page's `ca.pem`."""
    assert (served.folder / AUTHORITY).exists()
    monkeypatch.chdir(served.folder)


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("is_secured", [False, True], ids=["open", SECURED])
@pytest.mark.parametrize("mark", PYTHON)
def test_clients_for_python(served: DocumentedServers, mark: str, is_secured: bool) -> None:
    code = filled(block(mark, secured=is_secured).code, served.place(secured=is_secured))
    assert sorted(read_in_python(mark, code, RECORDS)) == VALUES


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("is_secured", [False, True], ids=["open", SECURED])
def test_javas_properties(served: DocumentedServers, tmp_path: Path, is_secured: bool) -> None:
    endpoint = served.place(secured=is_secured)
    code = filled(block("java", secured=is_secured).code, endpoint)
    assert sorted(read_in_java(code, endpoint, tmp_path, RECORDS)) == VALUES


def test_kafkas_tools(served: DocumentedServers) -> None:
    endpoint = replace(served.place(secured=False), group=unique("tools"))
    read, ends, groups, topics = told_by_tools(filled(block("tools", secured=False).code, endpoint))
    assert len(read.splitlines()) == 10
    assert set(read.encode().splitlines()) < set(VALUES)
    assert ends.split() == [f"{served.topic}:{number}:{RECORDS // 2}" for number in range(PARTITIONS)]
    rows = [line.split() for line in groups.splitlines() if line.startswith(endpoint.group)]
    assert sum(int(current) for _, _, _, current, *_ in rows) == 10
    assert f"PartitionCount: {PARTITIONS}" in topics


def test_every_block_is_run() -> None:
    marked = {(min(item.marks - {SECURED}), SECURED in item.marks) for item in read_blocks(PAGE)}
    executed = {(mark, item) for mark in (*PYTHON, "java") for item in (False, True)} | {("tools", False)}
    executed |= PROGRAMS.keys() | {("spark", False), ("spark", True)}  # these run in `make interop`
    assert marked == executed
