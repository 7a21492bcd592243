"""A server's TLS files, reloaded on change.

If they don't fit together, log a warning and keep the previous context.
"""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from cryptography import x509
from cryptography.x509.oid import NameOID

from archiver.access import Principal
from archiver.errors import ConfigError

NameFrom: TypeAlias = Literal["dn", "common_name"]
TlsVersion: TypeAlias = Literal["1.2", "1.3"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM files. With `client_ca`, clients need a certificate of one of these authorities."""

    certificate: Path
    key: Path
    key_password: str | None = None
    client_ca: Path | None = None
    least_version: TlsVersion = "1.2"

    @property
    def by_option(self) -> dict[str, Path]:
        named = {"certificate": self.certificate, "key": self.key, "client_ca": self.client_ca}
        return {f"serve.tls.{name}": path for name, path in named.items() if path is not None}


class ServerCertificates:
    def __init__(self, files: TlsFiles) -> None:
        """Raises ConfigError, which names the key, if a file is unusable."""
        self._files = files
        self._seen = self._states()
        self.context = tls_context(files)

    def look(self) -> bool:
        """Return whether the context is new. Blocking: call it in a worker thread."""
        states = self._states()
        if states == self._seen:
            return False
        self._seen = states
        try:
            self.context = tls_context(self._files)
        except ConfigError as error:
            _LOG.warning("the certificate of before is kept: the files have changed, and can't be used", exc_info=error)
            return False
        _LOG.info("the certificate was loaded again from %s", self._files.certificate)
        return True

    def _states(self) -> list[tuple[int, int, int] | None]:
        return [_state(file) for file in self._files.by_option.values()]


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """Raises ConfigError, which names the key, if a file is unusable."""
    for option, path in files.by_option.items():
        try:
            with path.open("rb") as file:
                file.read(1)
        except OSError as error:
            raise ConfigError(f"the file can't be read: {error.strerror}", key=option, path=str(path)) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if files.least_version == "1.3" else ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_NO_TICKET
    context.num_tickets = 0  # each connection shows its certificate
    try:
        # without a password, OpenSSL would prompt on the terminal
        context.load_cert_chain(files.certificate, files.key, password=files.key_password or "")
    except (OSError, ValueError) as error:
        raise ConfigError(
            "certificate and key don't fit each other, aren't PEM, or the key's password is wrong",
            key="serve.tls.key",
            certificate=str(files.certificate),
            path=str(files.key),
        ) from error
    if files.client_ca is not None:
        try:
            context.load_verify_locations(cafile=files.client_ca)
        except (OSError, ValueError) as error:
            raise ConfigError(
                "the file holds no certificates in PEM", key="serve.tls.client_ca", path=str(files.client_ca)
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def principal_of_certificate(der: bytes, name_from: NameFrom = "dn") -> Principal | None:
    """The DN is as in Kafka (RFC 4514), such as `User:CN=reader,O=Example`.

    None without such a name.
    """
    subject = x509.load_der_x509_certificate(der).subject
    if name_from == "dn":
        text = subject.rfc4514_string()
        return Principal(text) if text else None
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return Principal(str(names[0].value)) if len(names) == 1 else None
