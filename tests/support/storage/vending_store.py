"""A catalog that vends temporary credentials, and a store that expires them.

SeaweedFS' STS vends none for less than 15 minutes, so a proxy expires them.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.request import urlopen

from archiver.local.ports import HOST, choose
from archiver.local.seaweedfs import weed_binary
from tests.support.servers.serving import serving
from tests.support.storage.lossy_objects import LossyStore
from tests.support.timing.eventually import eventually

ROLE = "arn:aws:iam::role/Tables"
_IAM = {
    "sts": {
        "issuer": "tests",
        "signingKey": "dGVzdC1zaWduaW5nLWtleS0zMi1jaGFyYWN0ZXJzLWxvbmc=",
        "tokenDuration": "1h",
        "maxSessionLength": "12h",
    },
    "policy": {"defaultEffect": "Deny", "storeType": "memory"},
    "roles": [
        {
            "roleName": "Tables",
            "roleArn": ROLE,
            "trustPolicy": {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Federated": "iceberg-catalog"},
                        "Action": ["sts:AssumeRoleWithCredentials"],
                    },
                ],
            },
            "attachedPolicies": ["All"],
        }
    ],
    "policies": [
        {
            "name": "All",
            "document": {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Action": ["s3:*"], "Resource": ["*"]}],
            },
        }
    ],
    "providers": [],
}
_PORTS = {
    "s3": "s3.port",
    "s3-grpc": "s3.port.grpc",
    "catalog": "s3.port.iceberg",
    "master": "master.port",
    "master-grpc": "master.port.grpc",
    "volume": "volume.port",
    "volume-grpc": "volume.port.grpc",
    "filer": "filer.port",
    "filer-grpc": "filer.port.grpc",
    "admin": "admin.port",
}
_START_SECONDS = 60.0


class ExpiringStore(LossyStore):
    """Tokens are valid for `uses` uploads, until `expire`."""

    def __init__(self) -> None:
        super().__init__()
        self.uses: int | None = None
        self.tokens: set[str] = set()
        self._uploads: Counter[str] = Counter()
        self.ended: set[str] = set()
        self._counting = threading.Lock()

    def expire(self) -> None:
        with self._counting:
            self.ended |= self.tokens

    def is_expired(self, request: BaseHTTPRequestHandler) -> bool:
        token = request.headers.get("X-Amz-Security-Token")
        if token is None:
            return False
        with self._counting:
            self.tokens.add(token)
            self._uploads[token] += request.command in {"PUT", "POST"} and "/data/" in request.path
            if self.uses is not None and self._uploads[token] > self.uses:
                self.ended.add(token)
            return token in self.ended


class Vending:
    def __init__(self, ports: dict[str, int], keys: tuple[str, str], store: ExpiringStore) -> None:
        self.store = store
        uri = f"http://{HOST}:{ports['catalog']}"
        self.catalog = {
            "uri": uri,
            "oauth2-server-uri": f"{uri}/v1/oauth/tokens",
            "credential": ":".join(keys),
            "s3.endpoint": f"http://{HOST}:{ports['s3']}",
            "s3.proxy-uri": store.uri,
        }


@contextmanager
def vending_store(folder: Path, *, access_key: str, secret_key: str) -> Iterator[Vending]:
    ports = dict(choose(_PORTS))
    (folder / "iam.json").write_text(json.dumps(_IAM))
    options = {
        "dir": ".",
        "ip": HOST,
        "ip.bind": HOST,
        "master.telemetry": "false",
        "webdav": "false",
        "admin.ui": "false",
        "s3.port.lance": "0",
        "bucket": "lake",
        "tableBucket": "tables",
        "s3.externalUrl": f"http://{HOST}:{ports['s3']}",
        "s3.iam.config": str(folder / "iam.json"),
        "s3.iceberg.credentialRole": ROLE,
        **{option: str(ports[name]) for name, option in _PORTS.items()},
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(weed_binary()), "mini", *(f"-{key}={value}" for key, value in options.items())],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key},
        )
    try:
        _wait(ports, process, folder / "log")
        with serving(ExpiringStore()) as store:
            yield Vending(ports, (access_key, secret_key), store)
    finally:
        process.terminate()
        process.wait(30)


def _wait(ports: dict[str, int], process: subprocess.Popen[bytes], log: Path) -> None:
    expected = [("s3", "/healthz"), ("catalog", "/v1/config?warehouse=s3://tables"), ("filer", "/buckets/tables/")]

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        for port, path in expected:
            with urlopen(f"http://{HOST}:{ports[port]}{path}", timeout=2) as answer:
                answer.read()
        with urlopen(f"http://{HOST}:{ports['master']}/dir/status", timeout=2) as answer:
            return bool(json.load(answer)["Topology"]["Max"] > 0)

    eventually(
        is_ready,
        lambda: f"SeaweedFS: {log.read_text(errors='replace')[-2000:]}",
        seconds=_START_SECONDS,
        every=0.1,
        despite=(OSError, ValueError, KeyError, TypeError),
    )
