"""fake-gcs-server: compiled once (1 minute), accepts any token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from archiver.local.ports import choose
from tests.support.servers.guarded import guarded
from tests.support.servers.programs import go_program

MODULE = "github.com/fsouza/fake-gcs-server"
VERSION = "v1.56.1"


@contextmanager
def gcs_server(scratch: Path, bucket: str) -> Iterator[str]:
    port = choose(["gcs"])["gcs"]
    address = f"http://127.0.0.1:{port}"
    command = (
        str(go_program(MODULE, VERSION)),
        "-scheme=http",
        "-host=127.0.0.1",
        f"-port={port}",
        f"-public-host=127.0.0.1:{port}",
        f"-external-url={address}",
        "-backend=memory",
        "-log-level=warn",
    )
    with guarded(command, probe=f"{address}/_internal/healthcheck", log=scratch / "gcs.log"):
        requests.post(
            f"{address}/storage/v1/b", params={"project": "p"}, json={"name": bucket}, timeout=10
        ).raise_for_status()
        yield address
