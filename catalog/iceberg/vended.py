"""Renew a table's storage credentials in any process, before they expire."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, Self

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from catalog.errors import TableMissing
from catalog.iceberg.credentials import is_vended
from catalog.iceberg.rest import BoundedRestCatalog, connect, in_our_words

LOAD_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """It pickles."""

    table: str
    own: tuple[tuple[str, str], ...] = field(repr=False)

    @classmethod
    def of(cls, table: Table) -> Self | None:
        catalog = table.catalog
        texts = {name: value for name, value in table.io.properties.items() if isinstance(value, str)}
        if not isinstance(catalog, BoundedRestCatalog) or not is_vended(texts, catalog.configured):
            return None
        return cls(".".join(table.name()), tuple(sorted(catalog.configured.items())))

    def load(self) -> dict[str, str]:
        """Raises TableError."""
        own = dict(self.own)
        with in_our_words(own.get("uri", ""), self.table), closing(connect(own, timeout_seconds=LOAD_SECONDS)) as rest:
            try:
                table = rest.load_table(self.table)
            except NoSuchTableError:
                raise TableMissing("the table is gone: nobody vends credentials for it", table=self.table) from None
            return {name: value for name, value in table.io.properties.items() if isinstance(value, str)}
