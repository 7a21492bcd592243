"""From the section `[schema_registry]` to the settings of a client."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from archiver.config.model import SchemaRegistrySection
from archiver.errors import ConfigError
from archiver.schemas.registry_http import SchemaRegistrySettings


def schema_registry_settings(section: SchemaRegistrySection) -> SchemaRegistrySettings:
    """The settings of a client; a user and password in a url become its identity.

    Raises ConfigError where a file isn't there, or urls name different users.
    """
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
    """The url without what names a user, and that user with password."""
    parts = urlsplit(url)
    identity = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), identity


def _file(path: Path | None, key: str) -> str | None:
    if path is not None and not path.is_file():
        raise ConfigError("there is no such file", key=f"schema_registry.{key}", file=str(path))
    return None if path is None else str(path)
