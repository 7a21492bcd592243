"""Checks of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from archiver.config.model import AuditSection
from archiver.errors import ConfigError
from archiver.setup.machine_checks import look_at_signing_key


def test_signing_key_is_shown_by_id_and_bad_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "signing.pem"
    path.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (finding,) = look_at_signing_key(AuditSection(signing_key=path))
    assert not finding.failed
    assert str(path) in finding.detail
    path.write_text("no key")
    with pytest.raises(ConfigError, match="no Ed25519"):
        list(look_at_signing_key(AuditSection(signing_key=path)))


def test_without_a_signing_key_nothing_is_told() -> None:
    assert list(look_at_signing_key(AuditSection())) == []
