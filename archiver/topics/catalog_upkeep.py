"""Catalogs that rewrite or delete table files themselves (docs/catalogs.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_S3_TABLES: Final = (
    "S3 Tables compacts files, expires snapshots and deletes unreferenced files on its own: let its snapshot management"
    " keep snapshots for longer than the longest pause between two runs, and set unreferencedDays to 3 or more"
)
_UNITY: Final = (
    "Unity Catalog's predictive optimization compacts managed tables and deletes their old files on its own: keep the"
    " files of old snapshots for longer than the longest pause between two runs"
)
_BIGLAKE: Final = (
    "BigLake's table management can rewrite files and delete old ones on its own: keep the files of old snapshots for"
    " longer than the longest pause between two runs"
)


def upkeep_note(catalog: Mapping[str, str]) -> str | None:
    uri, warehouse = catalog.get("uri", "").lower(), catalog.get("warehouse", "").lower()
    if "s3tables" in uri or "s3tables" in warehouse or catalog.get("rest.signing-name") == "s3tables":
        return _S3_TABLES
    if "/unity-catalog/" in uri:
        return _UNITY
    if "biglake.googleapis.com" in uri:
        return _BIGLAKE
    return None
