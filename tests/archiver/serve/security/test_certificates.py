"""Certificates and TLS, over real sockets."""

from __future__ import annotations

import logging
import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from archiver.access.rules import Access
from archiver.serve.security.certificates import ServerCertificates, TlsFiles, principal_of_certificate
from archiver.serve.security.session import Session
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.kafka.secured_broker import make_certificates
from tests.support.servers.served_lake import SECONDS, ServedLake, Wire, request
from tests.support.timing.eventually import eventually


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture
def files(made: Path, tmp_path: Path) -> TlsFiles:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return TlsFiles(certificate=tmp_path / "server.crt", key=tmp_path / "server.key", client_ca=tmp_path / "ca.pem")


class TlsDoor:
    def __init__(self, certificates: ServerCertificates) -> None:
        self.certificates = certificates

    @property
    def context(self) -> ssl.SSLContext:
        return self.certificates.context

    def session(self, certificate: bytes | None) -> Session:
        principal = principal_of_certificate(certificate) if certificate else None
        return Session(mechanisms=None, access_of=lambda caller: Access(caller, ()), principal=principal)


def client_context(files: TlsFiles, name: str | None = "client") -> ssl.SSLContext:
    folder = files.certificate.parent
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    if name:
        context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return context


@contextmanager
def served(tmp_path: Path, files: TlsFiles, **options: float) -> Iterator[tuple[ServedLake, ServerCertificates]]:
    certificates = ServerCertificates(files)
    lake = archived(tmp_path / "lake", build([Record(value=b"x")]), end=1)
    with ServedLake(lake, door=TlsDoor(certificates), **options) as endpoint:
        yield endpoint, certificates


@contextmanager
def connected(endpoint: ServedLake, context: ssl.SSLContext) -> Iterator[Wire]:
    with Wire(endpoint.port) as wire:
        wire.socket = context.wrap_socket(wire.socket, server_hostname="127.0.0.1")
        yield wire


def shown(endpoint: ServedLake, context: ssl.SSLContext) -> bytes:
    with connected(endpoint, context) as wire:
        assert wire.ask(request(3, 12, topics=None)).topics
        assert isinstance(wire.socket, ssl.SSLSocket)
        certificate = wire.socket.getpeercert(binary_form=True)
        assert certificate
        return certificate


def test_new_connections_use_the_new_certificate(tmp_path: Path, files: TlsFiles) -> None:
    with served(tmp_path, files) as (endpoint, certificates), connected(endpoint, client_context(files)) as early:
        first = shown(endpoint, client_context(files))
        assert not certificates.look()
        for suffix in ("crt", "key"):
            shutil.copy(tmp_path / f"client.{suffix}", tmp_path / f"server.{suffix}")
        assert certificates.look()
        assert shown(endpoint, client_context(files)) != first
        assert early.ask(request(3, 12, topics=None)).topics


def test_a_pair_that_does_not_fit_is_warned_of_once(
    tmp_path: Path, files: TlsFiles, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = ServerCertificates(files)
    before = certificates.context
    shutil.copy(tmp_path / "client.crt", tmp_path / "server.crt")
    with caplog.at_level(logging.WARNING):
        assert not certificates.look()
        assert not certificates.look()
    assert certificates.context is before
    assert len(caplog.records) == 1
    assert "serve.tls.key" in caplog.text
    shutil.copy(tmp_path / "client.key", tmp_path / "server.key")
    assert certificates.look()


@pytest.mark.parametrize("name", ["stranger", None])
def test_clients_need_a_certificate_that_is_trusted(tmp_path: Path, files: TlsFiles, name: str | None) -> None:
    with served(tmp_path, files) as (endpoint, _):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            shown(endpoint, client_context(files, name))
        assert shown(endpoint, client_context(files))


def test_old_versions_of_tls_are_refused(tmp_path: Path, files: TlsFiles) -> None:
    with served(tmp_path, replace(files, least_version="1.3")) as (endpoint, _):
        old = client_context(files)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError):
            shown(endpoint, old)
        assert shown(endpoint, client_context(files))
    assert ServerCertificates(files).context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_silent_connections_count_give_way_and_time_out(tmp_path: Path, files: TlsFiles) -> None:
    with served(tmp_path, files, handshake_seconds=1.0, most_connections=6) as (endpoint, _):
        silent = [socket.create_connection(("127.0.0.1", endpoint.port), SECONDS) for _ in range(3)]
        eventually(lambda: endpoint.server.connections == 3, "three are connected")
        began = time.monotonic()
        late = socket.create_connection(("127.0.0.1", endpoint.port), SECONDS)
        assert silent[0].recv(1) == b"", "the oldest gives way"
        assert time.monotonic() - began < 0.8
        for connection in (*silent[1:], late):
            assert connection.recv(1) == b""
        for connection in (*silent, late):
            connection.close()
        eventually(lambda: not endpoint.server.connections, "the server has counted the ends that clients see")
        assert shown(endpoint, client_context(files))


def test_plain_bytes_to_a_port_with_tls_do_no_harm(tmp_path: Path, files: TlsFiles) -> None:
    with served(tmp_path, files) as (endpoint, _):
        with Wire(endpoint.port) as wire:
            wire.send(b"\0" * 100)
            assert wire.socket.recv(100)[:1] in (b"", b"\x15"), "an alert of TLS, or the end"
        assert shown(endpoint, client_context(files))
