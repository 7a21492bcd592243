"""Starting a part, with a toy server."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from archiver.errors import LocalStackError
from archiver.local import ports, process
from archiver.local.part import PartContext, Say
from archiver.local.part_runner import PartRunner
from archiver.local.process import Launch
from archiver.local.state import StateFile

SERVER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    server.accept()[0].sendall(b"here")
"""
BROKEN = "import sys; sys.exit('the setting `colour` is wrong')"
SILENT = "import time; print('thinking', flush=True); time.sleep(60)"


@dataclass(frozen=True, kw_only=True)
class Toy:
    script: str = SERVER
    thieves: list[socket.socket] | None = None
    name = "toy"
    title = "Toy"
    version = "1"
    port_names = ("toy",)
    stop_signal = signal.SIGTERM

    def prepare(self, context: PartContext, say: Say) -> None:
        context.folder.mkdir(exist_ok=True)
        if self.thieves is not None and not self.thieves:
            self.thieves.append(socket.create_server((ports.HOST, context.port("toy"))))

    def launch(self, context: PartContext) -> Launch:
        command = (sys.executable, "-c", self.script, str(context.port("toy")))
        return Launch(argv=command, cwd=context.folder, log=context.log)

    def tidy(self, context: PartContext) -> None:
        (context.folder / "left outside").unlink(missing_ok=True)

    def suits(self, context: PartContext) -> bool:
        return not (context.folder / "moved").exists()

    def is_ready(self, context: PartContext) -> bool:
        try:
            with socket.create_connection((ports.HOST, context.port("toy")), timeout=0.5) as connection:
                return connection.recv(4) == b"here"
        except OSError:
            return False


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "logs").mkdir()
    yield tmp_path
    PartRunner(part=Toy(), directory=tmp_path, state_file=StateFile(tmp_path)).stop(lambda _: None)


def runner(folder: Path, **how: object) -> PartRunner:
    return PartRunner(part=Toy(**how), directory=folder, state_file=StateFile(folder))


def start(one: PartRunner, *, ready_within: float = 20.0) -> tuple[bool, list[str]]:
    said: list[str] = []
    return one.start(said.append, threading.Event(), ready_within=ready_within), said


def test_it_starts_once_and_says_so(folder: Path):
    part = runner(folder)
    started, said = start(part)
    assert started
    assert said[0] == "starting"
    assert said[-1].startswith("ready in")
    assert start(runner(folder)) == (False, ["already up"])
    said = []
    assert part.stop(said.append)
    assert said == ["stopped"]
    assert part.mark is None
    assert not part.stop(said.append)


def test_the_port_is_remembered(folder: Path):
    part = runner(folder)
    start(part)
    port = part.context.port("toy")
    part.stop(lambda _: None)
    again = runner(folder)
    start(again)
    assert again.context.port("toy") == port


def test_a_port_taken_meanwhile_is_given_up(folder: Path):
    part = runner(folder)
    start(part)
    part.stop(lambda _: None)
    with socket.create_server((ports.HOST, part.context.port("toy"))) as thief:
        started, said = start(part)
        assert started
        assert "taken by another program" in said[0]
        assert part.context.port("toy") != thief.getsockname()[1]


def test_a_port_lost_while_starting_is_replaced(folder: Path):
    thieves: list[socket.socket] = []
    part = runner(folder, thieves=thieves)
    try:
        started, said = start(part)
    finally:
        for thief in thieves:
            thief.close()
    assert started
    assert any("trying others" in step for step in said)


def test_a_server_that_ends_shows_its_last_words(folder: Path):
    with pytest.raises(LocalStackError, match=r"Toy ended while starting(.|\n)*`colour` is wrong(.|\n)*toy\.log"):
        start(runner(folder, script=BROKEN))


def test_a_server_that_never_answers_is_named(folder: Path):
    with pytest.raises(LocalStackError, match=r"did not get ready within 1 s(.|\n)*thinking"):
        start(runner(folder, script=SILENT), ready_within=1.0)


def test_giving_up_ends_the_wait_at_once(folder: Path):
    part = runner(folder, script=SILENT)
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    begun = time.monotonic()
    with pytest.raises(LocalStackError):
        part.start(lambda _: None, cancelled)
    assert time.monotonic() - begun < 10


def test_a_server_that_stopped_answering_is_replaced(folder: Path):
    part = runner(folder)
    start(part)
    hung = process.find(part.mark)
    assert hung is not None
    hung.suspend()
    started, _ = start(part)
    assert started
    assert process.find(part.mark) != hung


def test_a_server_started_for_other_ports_is_replaced(folder: Path):
    part = runner(folder)
    start(part)
    before = part.mark
    (part.context.folder / "moved").touch()
    assert start(part)[0]
    assert part.mark != before


def test_ports_stay_reserved_from_start_to_end(folder: Path):
    part = runner(folder)
    part.reserve_ports(lambda _: None)
    port = part.context.port("toy")
    start(part)
    part.reserve_ports(lambda _: None)
    assert part.context.port("toy") == port
