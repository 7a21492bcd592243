"""Athena's SQL: Trino's with Hive's types. Not tested."""

from __future__ import annotations

from archiver.errors import ConfigError
from archiver.views.columns import Path
from archiver.views.dialects.dialect import Place
from archiver.views.dialects.trino import Trino


class Athena(Trino):
    default_catalog = "awsdatacatalog"

    def instant(self, value: str) -> str:
        return f"CAST({value} AT TIME ZONE 'UTC' AS timestamp(6))"

    def create(self, place: Place, table: Path, query: str) -> str:
        """The view is in Glue: no catalog, no SECURITY clause. Raises ConfigError."""
        if place.temporary:
            raise ConfigError("--temporary: Athena has no temporary views; name a database by --namespace")
        view = self.field((".".join(place.namespace or table[:-1]), place.name))
        return f"CREATE OR REPLACE VIEW {view} AS\n{query}"
