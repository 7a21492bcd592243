"""Views in Athena's SQL: Trino's, in a catalog of Hive's types. Written by its documents, and run by no test."""

from __future__ import annotations

from archiver.errors import ConfigError
from archiver.views.columns import Path
from archiver.views.dialects.dialect import Place
from archiver.views.dialects.trino import Trino


class Athena(Trino):
    """Athena, engine version 3, with tables in the AWS Glue catalog."""

    default_catalog = "awsdatacatalog"

    def instant(self, value: str) -> str:
        """Athena's views have no type for times with a zone: the time in UTC, without one."""
        return f"CAST({value} AT TIME ZONE 'UTC' AS timestamp(6))"

    def create(self, place: Place, table: Path, query: str) -> str:
        """The statement names no catalog for the view: views are in Glue. It takes no SECURITY clause."""
        if place.temporary:
            raise ConfigError("--temporary: Athena has no temporary views; name a database by --namespace")
        view = self.field((".".join(place.namespace or table[:-1]), place.name))
        return f"CREATE OR REPLACE VIEW {view} AS\n{query}"
