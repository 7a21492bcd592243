"""Only our SeaweedFS's dead sockets are removed."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from archiver.local import ports, state
from archiver.local.part import PartContext
from archiver.local.seaweedfs import SeaweedFS, has_volumes


def bound(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    return listener


@pytest.fixture
def context(tmp_path: Path) -> PartContext:
    existing = state.draw().with_ports(ports.choose(SeaweedFS().port_names))
    return PartContext(folder=tmp_path, log=tmp_path / "log", state=existing)


def test_only_dead_sockets_of_its_own_ports_are_removed(context: PartContext):
    mine, admin = context.port("s3"), context.port("admin") + ports.COMPANION
    names = [f"seaweedfs-s3-{mine}", f"seaweedfs-admin-grpc-{admin}", f"seaweedfs-filer-{context.port('filer')}"]
    dead, dead_grpc, living = (Path("/tmp") / f"{name}.sock" for name in names)
    foreign = Path(tempfile.gettempdir()) / f"seaweedfs-s3-{os.getpid()}99999.sock"
    with bound(living), bound(dead) as first, bound(dead_grpc) as second, bound(foreign) as third:
        for item in (first, second, third):
            item.close()
        try:
            SeaweedFS().tidy(context)
            assert [path.exists() for path in (dead, dead_grpc, living, foreign)] == [False, False, True, True]
        finally:
            for path in (dead, dead_grpc, living, foreign):
                path.unlink(missing_ok=True)


def test_nothing_to_remove_before_ports_are_known(tmp_path: Path):
    SeaweedFS().tidy(PartContext(folder=tmp_path, log=tmp_path / "log", state=state.draw()))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (b'{"Topology": {"Max": 69, "DataCenters": [{}]}}', True),
        (b'{"Topology": {"Max": 0, "DataCenters": null}}', False),
        (b'{"Topology": null}', False),
        (b"<html>", False),
        (None, False),
    ],
)
def test_it_is_ready_only_once_its_volumes_are_known(status: bytes | None, expected: bool):
    assert has_volumes(status) is expected
