"""The servers as containers, for ARCHIVER_TEST_STACK=docker, on the host's network (Linux). Untested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testcontainers.core.container import DockerContainer

from archiver.local import Endpoints, config_file, ports
from archiver.local.endpoints import endpoints_of
from archiver.local.kafka import Kafka, broker_settings
from archiver.local.part import PartContext, StackPart
from archiver.local.part_runner import context_of
from archiver.local.postgres import DATABASE, PORT, ROLE, PostgresPart
from archiver.local.seaweedfs import SeaweedFS
from archiver.local.stack import PARTS
from archiver.local.state import StackState, StateFile
from tests.support.timing.eventually import eventually

IMAGES = {"kafka": "apache/kafka", "seaweedfs": "chrislusf/seaweedfs", "postgres": "postgres"}
_READY_WITHIN = 120.0


@contextmanager
def docker_endpoints(directory: Path) -> Iterator[Endpoints]:
    state_file = StateFile(directory)
    names = [name for part in PARTS for name in part.port_names]
    state = state_file.change(lambda before: before.with_ports(ports.choose(names)))
    endpoints = endpoints_of(directory, directory / config_file.FILE_NAME, state)
    config_file.refresh(endpoints, known_digest="", moved={})
    with ExitStack() as running:
        contexts = [(part, context_of(part, directory, state)) for part in PARTS]
        for part, context in contexts:
            running.enter_context(_container(part, context))
        for part, context in contexts:
            _await(part, context)
        yield endpoints


def _container(part: StackPart, context: PartContext) -> DockerContainer:
    container = DockerContainer(f"{IMAGES[part.name]}:{part.version}").with_kwargs(network_mode="host")
    match part:
        case PostgresPart():
            return _with_env(container, _postgres_env(context.state)).with_command(
                f"-h {ports.HOST} -p {context.port(PORT)}"
            )
        case Kafka():
            settings = {**broker_settings(context.state), "log.dirs": "/tmp/kafka-logs"}
            names = {f"KAFKA_{key.upper().replace('.', '_')}": str(value) for key, value in settings.items()}
            return _with_env(container, {"CLUSTER_ID": context.state.cluster_id, **names})
        case SeaweedFS():
            launch = part.launch(context)
            return _with_env(container, dict(launch.env)).with_command(list(launch.argv[1:]))
        case _:
            raise NotImplementedError(part.name)


def _with_env(container: DockerContainer, values: dict[str, str]) -> DockerContainer:
    for name, value in values.items():
        container = container.with_env(name, value)
    return container


def _postgres_env(state: StackState) -> dict[str, str]:
    return {"POSTGRES_USER": ROLE, "POSTGRES_PASSWORD": state.postgres_password, "POSTGRES_DB": DATABASE}


def _await(part: StackPart, context: PartContext) -> None:
    eventually(lambda: part.is_ready(context), f"{part.title} in its container", seconds=_READY_WITHIN, every=0.2)
