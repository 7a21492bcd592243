"""TLS of the Flight listener. Changed files of `[serve.tls]` are read again."""

from __future__ import annotations

import logging
from typing import Final

import grpc
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from archiver.config.serve_security import TlsSection
from archiver.errors import ConfigError

_LOG = logging.getLogger(__name__)
_KEY: Final = "serve.tls.least_version"


def server_credentials(section: TlsSection) -> grpc.ServerCredentials:
    """Raises ConfigError."""
    if section.least_version == "1.3":
        raise ConfigError("gRPC can't refuse TLS 1.2: leave this out for `archiver serve flight`", key=_KEY)
    reader = _TlsReader(section)
    return grpc.dynamic_ssl_server_credentials(  # the stub lacks None for unchanged files
        reader.read(),
        reader.changed,  # type: ignore[arg-type]
        require_client_authentication=section.client_ca is not None,
    )


class _TlsReader:
    def __init__(self, section: TlsSection) -> None:
        self._section = section
        self._seen = self._state()

    def read(self) -> grpc.ServerCertificateConfiguration:
        section = self._section
        try:
            certificate = section.certificate.read_bytes()
            password = section.key_password.encode() if section.key_password else None
            key = load_pem_private_key(section.key.read_bytes(), password)
            roots = section.client_ca.read_bytes() if section.client_ca else None
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(
                f"certificate and key can't be used: {error}",
                key="serve.tls.key",
                certificate=str(section.certificate),
                path=str(section.key),
            ) from error
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return grpc.ssl_server_certificate_configuration([(pem, certificate)], root_certificates=roots)

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """None if the files are unchanged or unusable. Called at each handshake."""
        state = self._state()
        if state == self._seen:
            return None
        self._seen = state
        try:
            return self.read()
        except ConfigError as error:
            _LOG.warning(
                "the files of [serve.tls] have changed and can't be used; the earlier ones stay", exc_info=error
            )
            return None

    def _state(self) -> list[tuple[int, int] | None]:
        section = self._section
        paths = [path for path in (section.certificate, section.key, section.client_ca) if path is not None]
        states: list[tuple[int, int] | None] = []
        for path in paths:
            try:
                file = path.stat()
                states.append((file.st_mtime_ns, file.st_size))
            except OSError:
                states.append(None)
        return states
