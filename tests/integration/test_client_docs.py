"""The settings on docs/clients.md read a served archive as they stand, where everybody may come in and where not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from tests.support.archive.documented_queries import read_blocks
from tests.support.archive.job_runs import archive_once
from tests.support.clients.documented import (
    AUTHORITY,
    PAGE,
    PASSWORD,
    SECURED,
    USER,
    Place,
    block,
    filled,
    read_in_java,
    read_in_python,
    read_in_spark,
    told_by_tools,
)
from tests.support.kafka.secured_broker import make_certificates
from tests.support.servers.serve_command import serving
from tests.support.servers.stack import Stack, unique

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PARTITIONS, RECORDS = 2, 30
VALUES = sorted(b"order %d" % number for number in range(RECORDS))
PYTHON = ("confluent", "kafka_python", "aiokafka")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """An archived topic behind two servers, one of which asks who comes; `folder` has the authority's certificate."""

    topic: str
    folder: Path
    open_address: str
    secured_address: str

    def place(self, *, secured: bool) -> Place:
        """Where a block is to read, in a group of its own."""
        address = self.secured_address if secured else self.open_address
        return Place(address=address, topic=self.topic, group=unique("readers"))


@pytest.fixture(scope="module")
def served(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    topic = stack.topic(PARTITIONS, name=unique("orders"))
    stack.produce(topic, *({"value": value, "partition": at % 2} for at, value in enumerate(VALUES)))
    config = stack.config({topic: {}})
    archive_once(config)
    with serving(config) as open_address, serving(secured(stack, config, folder)) as secured_address:
        yield Served(topic=topic, folder=folder, open_address=open_address, secured_address=secured_address)


def secured(stack: Stack, config: Path, folder: Path) -> Path:
    """The same tables, for those who are known, in a registry of its own: else both servers are one cluster."""
    text = config.read_text().replace(load_config(config).registry.dsn, stack.database())
    made = folder / "archiver.toml"
    made.write_text(
        f'{text}\n[serve.tls]\ncertificate = "{folder / "server.crt"}"\nkey = "{folder / "server.key"}"\n'
        '[serve.sasl]\nmechanisms = ["SCRAM-SHA-512"]\n'
        '[[serve.acls]]\nprincipal = "User:team-*"\ntopics = ["orders*"]\ngroups = ["team-*"]\n'
    )
    made.chmod(0o600)
    words = ["users", "add", USER, "--password-file", "-", "--iterations", "4096", "--config", str(made)]
    done = CliRunner().invoke(app, words, input=PASSWORD)
    assert done.exit_code == 0, done.output
    return made


@pytest.fixture
def in_folder(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the page's `ca.pem` lies."""
    assert (served.folder / AUTHORITY).exists()
    monkeypatch.chdir(served.folder)


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("is_secured", [False, True], ids=["open", SECURED])
@pytest.mark.parametrize("mark", PYTHON)
def test_clients_for_python(served: Served, mark: str, is_secured: bool) -> None:
    code = filled(block(mark, secured=is_secured).code, served.place(secured=is_secured))
    assert sorted(read_in_python(mark, code, RECORDS)) == VALUES


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("is_secured", [False, True], ids=["open", SECURED])
def test_javas_properties(served: Served, tmp_path: Path, is_secured: bool) -> None:
    place = served.place(secured=is_secured)
    code = filled(block("java", secured=is_secured).code, place)
    assert sorted(read_in_java(code, place, tmp_path, RECORDS)) == VALUES


def test_sparks_options(served: Served) -> None:
    """The user may use no group but `team-…`, and Spark calls its own otherwise: it needs none."""
    found = [filled(block("spark", secured=each).code, served.place(secured=each)) for each in (False, True)]
    assert [sorted(each) for each in read_in_spark(found, served.folder)] == [VALUES, VALUES]


def test_kafkas_tools(served: Served) -> None:
    place = replace(served.place(secured=False), group=unique("tools"))
    read, ends, groups, topics = told_by_tools(filled(block("tools", secured=False).code, place))
    assert len(read.splitlines()) == 10
    assert set(read.encode().splitlines()) < set(VALUES)
    assert ends.split() == [f"{served.topic}:{each}:{RECORDS // 2}" for each in range(PARTITIONS)]
    rows = [line.split() for line in groups.splitlines() if line.startswith(place.group)]
    assert sum(int(current) for _, _, _, current, *_ in rows) == 10
    assert f"PartitionCount: {PARTITIONS}" in topics


def test_every_block_is_run() -> None:
    marked = {(min(each.marks - {SECURED}), SECURED in each.marks) for each in read_blocks(PAGE)}
    here = {(mark, each) for mark in (*PYTHON, "java", "spark") for each in (False, True)} | {("tools", False)}
    assert marked == here
