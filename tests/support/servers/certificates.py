"""Certificates by the openssl command."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_BRIEF = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


class Authority:
    def __init__(self, folder: Path, name: str = "authority") -> None:
        if shutil.which("openssl") is None:
            pytest.skip("there is no openssl command to make certificates with")
        self._folder = folder
        self._name = name
        self.certificate = folder / f"{name}.crt"
        self._key = folder / f"{name}.key"
        _openssl("req", "-x509", *_BRIEF, "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.certificate)

    def issue(self, name: str, *alternatives: str) -> tuple[Path, Path]:
        key, request, certificate = (self._folder / f"{self._name}-{name}.{kind}" for kind in ("key", "csr", "crt"))
        _openssl("req", *_BRIEF, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        extensions = self._folder / "extensions"
        extensions.write_text(f"subjectAltName={','.join(alternatives or (f'DNS:{name}',))}\n")
        signed = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-days", "2")
        _openssl("x509", "-req", "-in", request, *signed, "-extfile", extensions, "-out", certificate)
        return certificate, key


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
