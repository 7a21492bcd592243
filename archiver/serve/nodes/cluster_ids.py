"""The id of a cluster: the id of its catalog, however the catalog's address is written."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_PORTS: Final = {"http": 80, "https": 443, "postgresql": 5432}


def cluster_id_of(catalog: Mapping[str, str]) -> str:
    """The id of a catalog's cluster, as long as Kafka's own ids: the same for a catalog, and no live cluster's."""
    named = "|".join((plain_address(catalog["uri"]), catalog.get("warehouse", "").rstrip("/")))
    return urlsafe_b64encode(hashlib.sha256(named.encode()).digest()[:16]).decode().rstrip("=")


def plain_address(uri: str) -> str:
    """The one way to write an address: small letters, no default port, no slash at the end. Names aren't looked up."""
    with suppress(ValueError):  # it has a port that is none: the catalog's client will say so
        parts = urlsplit(uri.strip())
        port = parts.port
        if parts.hostname is not None:
            host = parts.hostname.rstrip(".")
            named = f"[{host}]" if ":" in host else host
            host = named if port in (None, _PORTS.get(parts.scheme)) else f"{named}:{port}"
            return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), parts.query, ""))
    return uri.strip()
