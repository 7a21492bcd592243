"""Signed documents, also checked by OpenSSL."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from archiver.audit.signing import PublicKey, Signature, SigningKey, canonical
from archiver.errors import ConfigError, SignatureInvalid

DOCUMENT = {"topic": "ordérs", "rows": 3, "ranges": [[0, 2], [2, 5]], "root": None, "ok": True}


def keys_in(folder: Path) -> tuple[SigningKey, PublicKey]:
    key = Ed25519PrivateKey.generate()
    private, public = folder / "signing.pem", folder / "signing.pub.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return SigningKey.load(private), PublicKey.load(public)


def test_a_signature_holds_for_the_document_in_any_order_of_keys(tmp_path: Path) -> None:
    signing, public = keys_in(tmp_path)
    signature = Signature.from_json(signing.sign(DOCUMENT).to_json())
    public.check(dict(reversed(DOCUMENT.items())), signature)
    assert signature.key_id == public.id == signing.id


@pytest.mark.parametrize(
    "changed",
    [
        DOCUMENT | {"rows": 4},
        DOCUMENT | {"rows": "3"},
        DOCUMENT | {"more": 1},
        {name: value for name, value in DOCUMENT.items() if name != "root"},
        DOCUMENT | {"ranges": [[2, 5], [0, 2]]},
    ],
)
def test_a_changed_document_is_found(tmp_path: Path, changed: dict[str, object]) -> None:
    signing, public = keys_in(tmp_path)
    with pytest.raises(SignatureInvalid, match="was changed"):
        public.check(changed, signing.sign(DOCUMENT))


def test_changed_signature_key_or_algorithm_is_found(tmp_path: Path) -> None:
    signing, public = keys_in(tmp_path)
    (tmp_path / "other").mkdir()
    _, other_key = keys_in(tmp_path / "other")
    signature = signing.sign(DOCUMENT)
    flipped = Signature(key_id=signature.key_id, value=signature.value[:-1] + bytes([signature.value[-1] ^ 1]))
    with pytest.raises(SignatureInvalid, match="was changed"):
        public.check(DOCUMENT, flipped)
    with pytest.raises(SignatureInvalid, match="another key"):
        other_key.check(DOCUMENT, signature)
    with pytest.raises(SignatureInvalid, match="algorithm"):
        public.check(DOCUMENT, Signature(key_id=public.id, value=signature.value, algorithm="rot13"))
    with pytest.raises(SignatureInvalid, match="incomplete"):
        Signature.from_json({"algorithm": "ed25519", "key_id": public.id, "value": "no base64!"})


def test_openssl_agrees(tmp_path: Path) -> None:
    signing, _ = keys_in(tmp_path)
    (tmp_path / "document").write_bytes(canonical(DOCUMENT))
    (tmp_path / "signature").write_bytes(signing.sign(DOCUMENT).value)
    command = "openssl pkeyutl -verify -rawin -pubin -inkey signing.pub.pem -in document -sigfile signature"
    done = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Verified" in done.stdout) == (0, True), done.stderr


def test_what_is_no_key_is_refused_with_its_file(tmp_path: Path) -> None:
    locked = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    curve_key = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for number, data in enumerate((b"", b"no key", locked, curve_key)):
        path = tmp_path / f"{number}.pem"
        path.write_bytes(data)
        with pytest.raises(ConfigError, match="no Ed25519 private key") as raised:
            SigningKey.load(path)
        assert raised.value.context == {"file": str(path), "key": "audit.signing_key"}
        with pytest.raises(ConfigError, match="no Ed25519 public key"):
            PublicKey.load(path)
    with pytest.raises(ConfigError, match="can't be read"):
        SigningKey.load(tmp_path / "none.pem")


def test_fractions_are_refused_and_keys_stay_hidden(tmp_path: Path) -> None:
    signing, _ = keys_in(tmp_path)
    with pytest.raises(ValueError, match="fraction"):
        signing.sign({"seconds": [{"took": 1.5}]})
    assert repr(signing).count("Ed25519") == 0
