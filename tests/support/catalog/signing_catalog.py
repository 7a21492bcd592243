"""A proxy before a REST catalog that signs requests to the store and gives no keys."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.catalog.lossy_catalog import CatalogRequest, LossyProxy
from tests.support.servers.serving import serving
from tests.support.servers.stack import to_toml

KEYS: Final = ("s3.access-key-id", "s3.secret-access-key")
_DELEGATION: Final = "x-iceberg-access-delegation"
_TABLES: Final = re.compile(r"/tables(/[^/]+)?$")


class SigningProxy(LossyProxy):
    """Offers remote signing in place of store keys, as the REST specification says since Iceberg 1.11.

    See `LoadTableResult` and `/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign` in apache/iceberg's
    `open-api/rest-catalog-open-api.yaml`. `signer.endpoint` is for clients before 1.12. `signed` counts requests.
    The `vended` keys, if there are any, go to clients whose header has `vended-credentials`, and win over signing.
    """

    def __init__(self, target: str, vended: Mapping[str, str]) -> None:
        super().__init__(target)
        self.vended = dict(vended)
        self.signed = 0

    def refusal(self, method: str, path: str, body: bytes) -> tuple[int, str, str] | None:
        if method == "POST" and path.endswith("/sign"):
            self.signed += 1
        return None

    def changed(self, request: CatalogRequest, answer: bytes) -> bytes:
        document = json.loads(answer) if _TABLES.search(request.path) and answer else {}
        if "metadata" not in document:
            return answer
        kept = {name: value for name, value in document.get("config", {}).items() if not name.startswith("s3.")}
        delegation = next((request.headers[name] for name in request.headers if name.lower() == _DELEGATION), "")
        if self.vended and "vended-credentials" in delegation:
            document["config"] = kept | self.vended
        else:
            where = request.path.rstrip("/").removeprefix("/") + "/sign"
            document["config"] = kept | {"s3.remote-signing-enabled": "true", "signer.endpoint": where}
            document["remote-signing-config"] = {"properties": {}, "headers": {}}
        return json.dumps(document).encode()


@contextmanager
def signing_proxy(target: str, vended: Mapping[str, str] | None = None) -> Iterator[SigningProxy]:
    with serving(SigningProxy(target, vended or {})) as proxy:
        yield proxy


def keyless(config: Path, uri: str) -> Path:
    """Take the store's keys out of `[catalog]`, and leave them to the journal."""
    document = tomllib.loads(config.read_text())
    catalog = document["catalog"]
    document["archive"] |= {f"journal.{name}": value for name, value in catalog.items() if name.startswith("s3.")}
    document["catalog"] = {name: value for name, value in catalog.items() if name not in KEYS} | {"uri": uri}
    config.write_text(to_toml(document))
    return config
