"""The error tree of `catalog`: the registry in Postgres and the Iceberg tables.

CatalogError
└── (leaves are added beside the modules that raise them)
"""

from __future__ import annotations

from schema_mapping.errors import ContextError


class CatalogError(ContextError):
    """Root of what `catalog` raises."""
