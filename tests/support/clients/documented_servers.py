"""A topic behind two servers, one with authentication."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from tests.support.archive.job_runs import archive_once
from tests.support.clients.documented import PASSWORD, USER, Place
from tests.support.kafka.secured_broker import make_certificates
from tests.support.servers.serve_command import serving
from tests.support.servers.stack import Stack, unique

PARTITIONS: Final = 2
RECORDS: Final = 30
VALUES: Final = sorted(b"order %d" % number for number in range(RECORDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedServers:
    topic: str
    folder: Path
    open_address: str
    secured_address: str

    def place(self, *, secured: bool) -> Place:
        address = self.secured_address if secured else self.open_address
        return Place(address=address, topic=self.topic, group=unique("readers"))


@contextmanager
def documented_servers(stack: Stack, folder: Path) -> Iterator[DocumentedServers]:
    make_certificates(folder)
    topic = stack.topic(PARTITIONS, name=unique("orders"))
    stack.produce(topic, *({"value": value, "partition": at % PARTITIONS} for at, value in enumerate(VALUES)))
    config = stack.config({topic: {}})
    archive_once(config)
    with serving(config) as open_address, serving(_secured(stack, config, folder)) as secured_address:
        yield DocumentedServers(topic=topic, folder=folder, open_address=open_address, secured_address=secured_address)


def _secured(stack: Stack, config: Path, folder: Path) -> Path:
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
