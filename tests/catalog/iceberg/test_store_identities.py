"""Roles and web identities of AWS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from pyiceberg.io import FileIO

from archiver.errors import StorageDenied
from archiver.storage.objects import ObjectStore
from catalog.iceberg.file_io import S3FileIO
from catalog.iceberg.store_settings import StoreSettingError
from tests.support.servers.serving import serving
from tests.support.servers.sts_server import KEY, TOKEN, StsServer, sts_server
from tests.support.storage.demanding_store import DemandingStore, Demands, demanding_store
from tests.support.timing.eventually import comes_true

ROLE = {"s3.role-arn": "arn:aws:iam::1:role/lake", "s3.role-session-name": "archiver"}
_RESOLVED = """
import pyarrow.fs as fs
fs.initialize_s3(fs.S3LogLevel.Debug)
fs.S3FileSystem(endpoint_override="http://127.0.0.1:1", region="eu-west-1").get_file_info("lake/a")
"""
_WRITTEN = """
import sys
from catalog.iceberg.s3_writer import S3Writer
settings = {"s3.sse.type": "kms", "s3.proxy-uri": sys.argv[1]}
S3Writer(settings, "lake", "eu-west-1").create("lake/a").close()
"""


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[StsServer]:
    with sts_server() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDBASE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield server


@pytest.fixture
def store() -> Iterator[DemandingStore]:
    with demanding_store(Demands()) as running:
        yield running


def without_keys(store: DemandingStore, **more: str) -> FileIO:
    named = {name: value for name, value in store.properties.items() if "key" not in name}
    return S3FileIO(named | {name.replace("_", "-"): value for name, value in more.items()})


@pytest.mark.parametrize("encryption", [{}, {"s3.sse.type": "kms"}], ids=["pyarrow", "obstore"])
def test_a_role_is_assumed(sts: StsServer, store: DemandingStore, encryption: dict[str, str]) -> None:
    client = S3FileIO(without_keys(store).properties | ROLE | encryption)
    with client.new_output("s3://lake/a").create() as stream:
        stream.write(b"x")
    assert client.new_input("s3://lake/a").open().read() == b"x"
    assert {request["RoleArn"] for request in sts.requests} == {ROLE["s3.role-arn"]}
    assert {request["RoleSessionName"] for request in sts.requests} == {"archiver"}
    assert store.keys == {(KEY, TOKEN)}


def test_a_refused_role_is_named(sts: StsServer, store: DemandingStore) -> None:
    sts.refuses = True
    client = ObjectStore.of({**without_keys(store).properties, **ROLE, "s3.sse.type": "kms"})
    with pytest.raises(StorageDenied, match=r"AWS refuses the role \(AssumeRole\)\. Its trust policy") as refused:
        client.write("s3://lake/a", b"x")
    assert "is not authorized to perform: sts:AssumeRole" in refused.value.context["cause"]
    assert "Grant" not in refused.value.message
    assert not refused.value.retryable
    assert store.objects == {}


def test_an_alias_of_an_access_point_is_a_bucket(store: DemandingStore) -> None:
    """docs.aws.amazon.com/AmazonS3/latest/userguide/access-points-alias.html"""
    alias = "lake-a1b2c3d4e5f6g7h8-s3alias"
    for encryption in ({}, {"s3.sse.type": "kms"}):
        client = S3FileIO(store.properties | encryption)
        with client.new_output(f"s3://{alias}/a{len(encryption)}").create() as stream:
            stream.write(b"x")
    assert set(store.objects) == {f"{alias}/a0", f"{alias}/a1"}


def test_an_arn_in_a_location_is_refused(store: DemandingStore) -> None:
    client = S3FileIO(store.properties)
    with pytest.raises(StoreSettingError, match="write the access point's alias"):
        client.new_output("s3://arn:aws:s3:eu-west-1:1:accesspoint/lake/a")


def test_pyarrow_takes_a_web_identity(tmp_path: Path) -> None:
    """AWS's SDK allows no other address of STS here, so its log is the evidence."""
    token = tmp_path / "token"
    token.write_text("a token of the cluster")
    environment = {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_ROLE_ARN": ROLE["s3.role-arn"],
        "AWS_REGION": "eu-west-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": str(tmp_path),
    }
    log = tmp_path / "log"
    command = (sys.executable, "-c", _RESOLVED)
    with log.open("w") as output, subprocess.Popen(command, env=environment, stdout=output) as process:
        comes_true(lambda: "sts.eu-west-1.amazonaws.com" in log.read_text(), 60)
        process.kill()  # it would try on
    text = log.read_text()
    assert "Successfully loaded all required parameters for sts web identity credentials provider" in text
    assert "sts.eu-west-1.amazonaws.com" in text


class _Proxy(BaseHTTPRequestHandler):
    connected: ClassVar[list[str]]

    def do_CONNECT(self) -> None:
        self.connected.append(self.path)
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        pass


def test_the_second_client_takes_a_web_identity(tmp_path: Path) -> None:
    """It allows no other address for web identities than AWS's own, so a proxy is the evidence."""
    token = tmp_path / "token"
    token.write_text("a token of the cluster")
    environment = {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_ROLE_ARN": ROLE["s3.role-arn"],
        "AWS_REGION": "eu-west-1",
        "HOME": str(tmp_path),
    }
    connected: list[str] = []
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), type("Proxy", (_Proxy,), {"connected": connected}))) as proxy:
        command = (sys.executable, "-c", _WRITTEN, f"http://127.0.0.1:{proxy.server_port}")
        with subprocess.Popen(command, env=environment) as process:
            comes_true(lambda: bool(connected), 60)
            process.kill()  # it would try on
    assert set(connected) == {"sts.eu-west-1.amazonaws.com:443"}
