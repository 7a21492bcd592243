"""Cluster ids, derived from the catalog's normalized address and warehouse."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_PORTS: Final = {"http": 80, "https": 443, "postgresql": 5432}


def cluster_id_of(catalog: Mapping[str, str]) -> str:
    """The same for a catalog, never a live cluster's."""
    named = "|".join((plain_address(catalog["uri"]), catalog.get("warehouse", "").rstrip("/")))
    return urlsafe_b64encode(hashlib.sha256(named.encode()).digest()[:16]).decode().rstrip("=")


def plain_address(uri: str) -> str:
    """Lower case, no default port, no trailing slash. Names aren't resolved."""
    with suppress(ValueError):  # it has a port that is none: the catalog's client will say so
        parts = urlsplit(uri.strip())
        port = parts.port
        if parts.hostname is not None:
            host = parts.hostname.rstrip(".")
            named = f"[{host}]" if ":" in host else host
            host = named if port in (None, _PORTS.get(parts.scheme)) else f"{named}:{port}"
            return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), parts.query, ""))
    return uri.strip()
