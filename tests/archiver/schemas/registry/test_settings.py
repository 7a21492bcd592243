"""The schema registry over real TLS."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from archiver.config.model import SchemaRegistrySection
from archiver.errors import ConfigError, SchemaRegistryError, SchemaRegistryUnavailable
from archiver.schemas.protobuf.registered_schema import PROTOBUF_SCHEMAS
from archiver.schemas.registry.client import SchemaRegistry
from archiver.schemas.registry.settings import schema_registry_settings
from tests.support.schemas.fake_registry import FakeRegistry, basic, fake_registry
from tests.support.servers.certificates import Authority

TEXT = 'syntax = "proto3"; message M {}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def server_tls(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("registry", "IP:127.0.0.1"))
    return context


@pytest.fixture
def registry(server_tls: ssl.SSLContext) -> Iterator[FakeRegistry]:
    with fake_registry(server_tls) as registry:
        registry.register("s", TEXT)
        yield registry


def latest(registry: FakeRegistry, **keys: object) -> int:
    section = SchemaRegistrySection.model_validate({"url": registry.url, "timeout": "5s", **keys})
    settings = schema_registry_settings(section)
    return SchemaRegistry(replace(settings, pause=0.001)).schemas(PROTOBUF_SCHEMAS).latest("s").id


def test_an_authority_of_ones_own(registry: FakeRegistry, authority: Authority) -> None:
    assert latest(registry, ca_file=authority.certificate) == 100_001


def test_who_is_not_trusted_is_not_asked(registry: FakeRegistry, folder: Path) -> None:
    certificate = Authority(folder, "another").certificate
    for keys in ({}, {"ca_file": certificate}):
        with pytest.raises(SchemaRegistryError, match=r"TLS with the schema registry fails: .*certificate") as caught:
            latest(registry, **keys)
        assert not caught.value.retryable
    assert registry.asked == []


def test_the_name_must_be_the_certificates(registry: FakeRegistry, authority: Authority) -> None:
    url = registry.url.replace("127.0.0.1", "localhost")
    with pytest.raises(SchemaRegistryError, match="Hostname mismatch"):
        latest(registry, url=url, ca_file=authority.certificate)
    assert registry.asked == []


def test_a_client_certificate(authority: Authority, folder: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("registry", "IP:127.0.0.1"))
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    with fake_registry(context) as registry:
        registry.register("s", TEXT)
        certificate, key = authority.issue("archiver")
        own = {"ca_file": authority.certificate, "cert_file": certificate}
        assert latest(registry, **own, key_file=key) == 100_001
        both = folder / "both.pem"
        both.write_bytes(certificate.read_bytes() + key.read_bytes())
        assert latest(registry, ca_file=authority.certificate, cert_file=both) == 100_001
        foreign, foreign_key = Authority(folder, "foreign").issue("archiver")
        asked = len(registry.asked)
        for keys in ({}, {"cert_file": foreign, "key_file": foreign_key}):
            with pytest.raises(SchemaRegistryError, match=r"certificate|unknown ca|does not answer"):
                latest(registry, ca_file=authority.certificate, **keys)
        assert len(registry.asked) == asked


def test_files_that_are_none(registry: FakeRegistry, authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file.*schema_registry.ca_file"):
        latest(registry, ca_file=tmp_path / "none.crt")
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    for keys in ({"ca_file": nonsense}, {"ca_file": authority.certificate, "cert_file": nonsense}):
        with pytest.raises(SchemaRegistryError) as caught:
            latest(registry, **keys)
        assert not caught.value.retryable


def test_http_where_https_is_spoken_and_the_other_way(registry: FakeRegistry) -> None:
    with pytest.raises(SchemaRegistryError):
        latest(registry, url=registry.url.replace("https", "http"))
    with fake_registry() as plain, pytest.raises(SchemaRegistryError, match="TLS") as caught:
        latest(plain, url=plain.url.replace("http", "https"))
    assert not caught.value.retryable


def test_a_user_in_the_url(registry: FakeRegistry, authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    registry.authorization = basic("me@work", "p:w/d")
    url = registry.url.replace("https://", "https://me%40work:p%3Aw%2Fd@")
    assert latest(registry, url=url, ca_file=authority.certificate) == 100_001
    registry.authorization = "Basic other"
    section = SchemaRegistrySection.model_validate({"url": url, "ca_file": authority.certificate})
    with pytest.raises(SchemaRegistryError, match="refuses the credentials") as caught:
        latest(registry, url=url, ca_file=authority.certificate)
    shown = f"{caught.value!r} {caught.value} {section!r} {schema_registry_settings(section)!r} {caplog.text}"
    assert schema_registry_settings(section).name == registry.url
    for secret in ("p:w/d", "p%3Aw", "me%40work:", basic("me@work", "p:w/d")):
        assert secret not in shown


def test_urls_of_different_users(registry: FakeRegistry) -> None:
    urls = ",".join(registry.url.replace("https://", f"https://{who}@") for who in ("one:x", "two:y"))
    with pytest.raises(ConfigError, match="one user") as caught:
        latest(registry, url=urls)
    assert "one:x" not in str(caught.value)


@pytest.mark.parametrize("keys", [{"token": "t"}, {"username": "u", "password": "p"}])
def test_two_identities(keys: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="names a user already"):
        SchemaRegistrySection.model_validate({"url": "https://me:pw@host", **keys})


def test_another_address_answers(registry: FakeRegistry, authority: Authority) -> None:
    nowhere = "https://127.0.0.1:9"
    assert latest(registry, url=f"{nowhere}, {registry.url}", ca_file=authority.certificate) == 100_001


def test_a_connection_that_only_breaks_may_be_tried_again(registry: FakeRegistry, authority: Authority) -> None:
    registry.down = True
    with pytest.raises(SchemaRegistryUnavailable):
        latest(registry, ca_file=authority.certificate)
