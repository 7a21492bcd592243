"""Views in Trino's SQL."""

from __future__ import annotations

from archiver.errors import ConfigError
from archiver.views.columns import Path
from archiver.views.dialects.dialect import Place
from archiver.views.dialects.standard import StandardSql
from archiver.views.kinds import ByteForm


class Trino(StandardSql):
    def bytes_as(self, value: str, form: ByteForm) -> str:
        """`from_utf8` replaces invalid UTF-8, so the text is compared with the bytes."""
        match form:
            case ByteForm.RAW:
                return value
            case ByteForm.HEX:
                return f"to_hex({value})"
            case ByteForm.BASE64:
                return f"to_base64({value})"
            case ByteForm.UTF8:
                text = f"from_utf8({value})"
                return f"CASE WHEN to_utf8({text}) = {value} THEN {text} ELSE '0x' || to_hex({value}) END"

    def header_map(self, headers: str, form: ByteForm) -> str:
        """`multimap_from_entries` keeps the order of equal names."""
        entries = f"transform({headers}, h -> ROW(h.key, {self.bytes_as('h.value', form)}))"
        return f"transform_values(multimap_from_entries({entries}), (k, v) -> element_at(v, -1))"

    def create(self, place: Place, table: Path, query: str) -> str:
        """The caller's rights on the table count. Raises ConfigError."""
        if place.temporary:
            raise ConfigError("--temporary: Trino has no temporary views; name a schema by --namespace")
        view = self.table(place.catalog, (*(place.namespace or table[:-1]), place.name))
        return f"CREATE OR REPLACE VIEW {view} SECURITY INVOKER AS\n{query}"
