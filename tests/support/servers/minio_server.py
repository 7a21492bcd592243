"""MinIO: compiled from its Go module once (4 minutes), 0.5 s to start."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from minio import Minio
from minio.credentials import StaticProvider
from minio.minioadmin import MinioAdmin

from archiver.local.ports import choose
from tests.support.servers.guarded import guarded
from tests.support.servers.programs import go_program

MODULE = "github.com/minio/minio"
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
REGION = "us-east-1"
KMS_KEY = "lake-key"
"""The only key of its key service."""
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

    def limited(self, *denials: Mapping[str, Any]) -> MinioServer:
        key, secret = f"key{secrets.token_hex(8)}", secrets.token_hex(16)
        allowed = {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["arn:aws:s3:::*"]}
        policy = {
            "Version": "2012-10-17",
            "Statement": [allowed, *({"Effect": "Deny", **denial} for denial in denials)],
        }
        with urllib3.PoolManager(timeout=SECONDS) as pool:
            admin = MinioAdmin(
                endpoint=urlsplit(self.endpoint).netloc,
                credentials=StaticProvider(self.access_key, self.secret_key),
                secure=False,
                http_client=pool,
            )
            admin.add_service_account(access_key=key, secret_key=secret, policy=policy)
        return MinioServer(endpoint=self.endpoint, access_key=key, secret_key=secret)

    @contextmanager
    def connected(self) -> Iterator[Minio]:
        pool = urllib3.PoolManager(timeout=SECONDS, retries=urllib3.Retry(total=2, backoff_factor=0.2))
        with pool:
            yield self._client(pool)

    def client(self) -> Minio:
        return self._client(urllib3.PoolManager(timeout=SECONDS, retries=urllib3.Retry(total=2, backoff_factor=0.2)))

    def _client(self, pool: urllib3.PoolManager) -> Minio:
        return Minio(
            urlsplit(self.endpoint).netloc,
            access_key=self.access_key,
            secret_key=self.secret_key,
            secure=False,
            region=REGION,
            http_client=pool,
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
        "MINIO_KMS_SECRET_KEY": f"{KMS_KEY}:{base64.b64encode(secrets.token_bytes(32)).decode()}",
    }
    log = scratch / "minio.log"
    with guarded(command, probe=f"{endpoint}/minio/health/ready", log=log, environment=settings):
        yield server
