"""Views in a DuckDB database: attached Iceberg catalogs take none."""

from __future__ import annotations

from archiver.views.columns import Path
from archiver.views.dialects.dialect import Place
from archiver.views.dialects.standard import StandardSql
from archiver.views.kinds import ByteForm


class DuckDB(StandardSql):
    def bytes_as(self, value: str, form: ByteForm) -> str:
        """`decode` fails on invalid UTF-8; TRY makes it null."""
        match form:
            case ByteForm.RAW:
                return value
            case ByteForm.HEX:
                return f"hex({value})"
            case ByteForm.BASE64:
                return f"to_base64({value})"
            case ByteForm.UTF8:
                return f"coalesce(TRY(decode({value})), '0x' || hex({value}))"

    def header_map(self, headers: str, form: ByteForm) -> str:
        """`map_from_entries` refuses equal keys."""
        later = f"list_filter({headers}[i + 1:], lambda l: l.key = h.key)"
        last = f"list_filter({headers}, lambda h, i: len({later}) = 0)"
        return f"map_from_entries(list_transform({last}, lambda h: (h.key, {self.bytes_as('h.value', form)})))"

    def create(self, place: Place, table: Path, query: str) -> str:
        del table
        temporary = "TEMPORARY " if place.temporary else ""
        view = self.field((*(() if place.temporary else place.namespace or ()), place.name))
        return f"CREATE OR REPLACE {temporary}VIEW {view} AS\n{query}"
