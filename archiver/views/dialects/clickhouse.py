"""ClickHouse's SQL, as far as it reads Iceberg tables (tested with 26.9).

In older files it finds a struct's field only if the whole struct is read: `identity(val).x`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.types import IcebergType, StringType

from archiver.errors import ConfigError
from archiver.views.columns import Path
from archiver.views.dialects.dialect import Place
from archiver.views.kinds import ByteForm


class ClickHouse:
    """Its strings are bytes. The database has the engine DataLakeCatalog."""

    default_catalog = "lake"

    def quoted(self, name: str) -> str:
        return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"

    def field(self, path: Path) -> str:
        table, column, *below = map(self.quoted, path)
        return ".".join((f"identity({table}.{column})", *below))

    def bytes_as(self, value: str, form: ByteForm) -> str:
        match form:
            case ByteForm.RAW:
                return value
            case ByteForm.HEX:
                return f"hex({value})"
            case ByteForm.BASE64:
                return f"base64Encode({value})"
            case ByteForm.UTF8:
                return f"if(isValidUTF8({value}), {value}, concat('0x', hex({value})))"

    def header_map(self, headers: str, form: ByteForm) -> str:
        """A map here returns the first of equal names."""
        later = f"arrayExists(l -> l.key = h.key, arraySlice({headers}, i + 1))"
        last = f"arrayFilter((h, i) -> NOT {later}, {headers}, arrayEnumerate({headers}))"
        values = f"arrayMap(h -> {self.bytes_as('h.value', form)}, {last})"
        return f"mapFromArrays(arrayMap(h -> assumeNotNull(h.key), {last}), {values})"

    def instant(self, value: str) -> str:
        return value

    def cast(self, value: str, kind: IcebergType) -> str:
        return f"CAST({value} AS Nullable({'String' if isinstance(kind, StringType) else 'Float64'}))"

    def is_null(self, struct: str, scalars: Sequence[str], collections: Sequence[str]) -> str:
        """An empty message with only nullable fields looks null, too."""
        del struct
        nothing = [f"{value} IS NULL" for value in scalars] + [f"empty({value})" for value in collections]
        return f"CAST({' AND '.join(nothing)} AS Bool)"

    def table(self, catalog: str, path: Path) -> str:
        return f"{self.quoted(catalog)}.{self.quoted('.'.join(path))}"

    def create(self, place: Place, table: Path, query: str) -> str:
        """In the current database: a catalog's takes no view. Raises ConfigError."""
        del table
        if place.temporary:
            raise ConfigError("--temporary: ClickHouse's views last; name a database by --namespace")
        view = ".".join(map(self.quoted, (*(place.namespace or ()), place.name)))
        return f"CREATE OR REPLACE VIEW {view} AS\n{query}"
