"""A separate broker, for restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from archiver.local import kafka, ports, process
from archiver.local.part import PartContext
from archiver.local.process import ProcessMark
from archiver.local.state import draw
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

_READY_WITHIN = 90.0
_ENDS_WITHIN = 30.0


class OwnBroker:
    def __init__(self, shared: Stack, folder: Path, settings: Mapping[str, object]) -> None:
        chosen = ports.choose((kafka.PORT, kafka.CONTROLLER_PORT))
        self._context = PartContext(folder=folder / "kafka", log=folder / "kafka.log", state=draw().with_ports(chosen))
        self._settings = settings
        self._mark: ProcessMark | None = None
        address = kafka.bootstrap_servers(self._context.state)
        self.stack = Stack(replace(shared.endpoints, bootstrap_servers=address), folder)

    def start(self) -> None:
        part = kafka.Kafka()
        part.prepare(self._context, lambda _: None)
        with (self._context.folder / "server.properties").open("a") as properties:
            properties.writelines(f"{name}={value}\n" for name, value in self._settings.items())
        self._mark = process.spawn(part.launch(self._context))

        def is_ready() -> bool:
            assert process.is_running(self._mark), process.tail(self._context.log)
            return part.is_ready(self._context)

        eventually(is_ready, lambda: process.tail(self._context.log), seconds=_READY_WITHIN, every=0.1)

    def stop(self) -> None:
        process.stop(self._mark, with_signal=kafka.Kafka.stop_signal, timeout=_ENDS_WITHIN)

    def restart(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Every partition gets a new leader epoch."""
        self.stop()
        meanwhile()
        self.start()

    def log_folder(self, topic: str, partition: int = 0) -> Path:
        return self._context.folder / "data" / f"{topic}-{partition}"


@contextmanager
def own_broker(shared: Stack, folder: Path, settings: Mapping[str, object] | None = None) -> Iterator[OwnBroker]:
    broker = OwnBroker(shared, folder, settings or {})
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
