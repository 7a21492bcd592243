"""The settings of a schema registry client."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from archiver.config.model import SchemaRegistrySection
from archiver.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistrySettings:
    """Times are in seconds.

    `urls` are tried in turn. After all attempts failed there are no requests for `rest`. Unknown ids are
    requested again after `forget_after`, latest schemas after `latest_ttl`.
    """

    urls: tuple[str, ...]
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    timeout: float = 10.0
    latest_ttl: float = 0.0
    attempts: int = 6
    pause: float = 0.25
    rest: float = 5.0
    forget_after: float = 30.0

    @property
    def name(self) -> str:
        return ",".join(url.rstrip("/") for url in self.urls)


def schema_registry_settings(section: SchemaRegistrySection) -> SchemaRegistrySettings:
    """A url's credentials take precedence. Raises ConfigError for a missing file or different users."""
    urls, identities = zip(*(_split(url.strip()) for url in section.url.split(",")), strict=True)
    named = sorted({identity for identity in identities if identity is not None})
    if len(named) > 1:
        raise ConfigError("all urls of the schema registry must name one user", key="schema_registry.url")
    username, password = named[0] if named else (section.username, section.password)
    return SchemaRegistrySettings(
        urls=urls,
        username=username,
        password=password,
        token=section.token,
        ca_file=_file(section.ca_file, "ca_file"),
        cert_file=_file(section.cert_file, "cert_file"),
        key_file=_file(section.key_file, "key_file"),
        timeout=section.timeout,
        latest_ttl=section.latest_ttl,
    )


def _split(url: str) -> tuple[str, tuple[str, str] | None]:
    parts = urlsplit(url)
    identity = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), identity


def _file(path: Path | None, key: str) -> str | None:
    if path is not None and not path.is_file():
        raise ConfigError("there is no such file", key=f"schema_registry.{key}", file=str(path))
    return None if path is None else str(path)
