"""Views in Spark SQL 4."""

from __future__ import annotations

from archiver.views.columns import Path
from archiver.views.dialects.dialect import Place
from archiver.views.dialects.standard import StandardSql
from archiver.views.kinds import ByteForm


class Spark(StandardSql):
    text_type = "STRING"

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def bytes_as(self, value: str, form: ByteForm) -> str:
        match form:
            case ByteForm.RAW:
                return value
            case ByteForm.HEX:
                return f"hex({value})"
            case ByteForm.BASE64:
                return f"base64({value})"
            case ByteForm.UTF8:
                text = f"CAST({value} AS STRING)"
                return f"CASE WHEN is_valid_utf8({text}) THEN {text} ELSE concat('0x', hex({value})) END"

    def header_map(self, headers: str, form: ByteForm) -> str:
        """`map_from_entries` refuses equal keys."""
        last = f"filter({headers}, (h, i) -> NOT exists(slice({headers}, i + 2, size({headers})), l -> l.key = h.key))"
        return f"map_from_entries(transform({last}, h -> struct(h.key, {self.bytes_as('h.value', form)})))"

    def table(self, catalog: str, path: Path) -> str:
        return self.field((catalog, *path))

    def create(self, place: Place, table: Path, query: str) -> str:
        if place.temporary:
            return f"CREATE OR REPLACE TEMPORARY VIEW {self.quoted(place.name)} AS\n{query}"
        view = self.table(place.catalog, (*(place.namespace or table[:-1]), place.name))
        return f"CREATE OR REPLACE VIEW {view} AS\n{query}"
