"""MinIO: compiled from its Go module once (4 minutes), 0.5 s to start."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import urllib3
from minio import Minio

from archiver.local.ports import choose
from tests.support.servers.guarded import guarded
from tests.support.servers.programs import go_program

MODULE = "github.com/minio/minio"
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
REGION = "us-east-1"
SECONDS = 15.0
"""How long the client waits for an answer. By itself it waits five minutes, six times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinioServer:
    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)

    @property
    def properties(self) -> dict[str, str]:
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
            "s3.region": REGION,
            "s3.path-style-access": "true",
        }

    def client(self) -> Minio:
        return Minio(
            urlsplit(self.endpoint).netloc,
            access_key=self.access_key,
            secret_key=self.secret_key,
            secure=False,
            region=REGION,
            http_client=urllib3.PoolManager(timeout=SECONDS, retries=urllib3.Retry(total=2, backoff_factor=0.2)),
        )


@contextmanager
def minio_server(scratch: Path) -> Iterator[MinioServer]:
    ports = choose(["minio", "minio-console"])
    endpoint = f"http://127.0.0.1:{ports['minio']}"
    server = MinioServer(endpoint=endpoint, access_key="archiver", secret_key=secrets.token_hex(16))
    command = (
        str(go_program(MODULE, VERSION)),
        "server",
        str(scratch / "minio"),
        "--address",
        f"127.0.0.1:{ports['minio']}",
        "--console-address",
        f"127.0.0.1:{ports['minio-console']}",
    )
    settings = {
        "MINIO_ROOT_USER": server.access_key,
        "MINIO_ROOT_PASSWORD": server.secret_key,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }
    log = scratch / "minio.log"
    with guarded(command, probe=f"{endpoint}/minio/health/ready", log=log, environment=settings):
        yield server
