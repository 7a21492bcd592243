"""TLS connections, by librdkafka's `ssl.*` options."""

from __future__ import annotations

import ssl
from pathlib import Path

from archiver.errors import ConfigError
from archiver.kafka.sockets import TlsSocket


def tls_context(
    *,
    ca: str | None,
    certificate: str | None,
    key: str | None,
    key_password: str | None,
    verify: bool,
    check_hostname: bool,
) -> ssl.SSLContext:
    """Raises a ConfigError that names the option if its file can't be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = TlsSocket
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = verify and check_hostname
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    if ca is None:
        context.load_default_certs()
    else:
        _load_authorities(context, ca)
    if certificate is not None and key is not None:
        _load_identity(context, certificate, key, key_password)
    return context


def _load_authorities(context: ssl.SSLContext, ca: str) -> None:
    path = _readable("ssl.ca.location", ca)
    try:
        context.load_verify_locations(cafile=None if path.is_dir() else ca, capath=ca if path.is_dir() else None)
    except (OSError, ValueError) as error:
        raise ConfigError("The file holds no certificates in PEM", option="ssl.ca.location", path=ca) from error


def _load_identity(context: ssl.SSLContext, certificate: str, key: str, key_password: str | None) -> None:
    _readable("ssl.certificate.location", certificate)
    _readable("ssl.key.location", key)
    try:
        # without a password, OpenSSL would prompt for one on the terminal
        context.load_cert_chain(certificate, key, password=key_password or "")
    except (OSError, ValueError) as error:
        raise ConfigError(
            "Certificate and key don't fit each other, aren't PEM, or the key's password is wrong",
            options=("ssl.certificate.location", "ssl.key.location", "ssl.key.password"),
            certificate=certificate,
            key=key,
        ) from error


def _readable(option: str, name: str) -> Path:
    path = Path(name)
    try:
        path.stat()
        if path.is_file():
            with path.open("rb"):
                pass
    except OSError as error:
        raise ConfigError(f"The file can't be read: {error.strerror}", option=option, path=name) from error
    return path
