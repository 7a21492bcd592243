"""Views that flatten: a topic's table with plain columns, in the words of each engine (docs/views.md).

- what one may ask for: `kinds`, `choice`
- what a view has: `leaves` (the table's columns without structs), `column_names` (names that last), `columns`, `view`
- how it is written: `dialects`
- where it goes: `catalog_view` (Iceberg catalogs), `duckdb` (a connection)

Nothing here reads data files, Kafka or Postgres: a view is made from the table's metadata.
"""

__all__ = ["catalog_view", "choice", "dialects", "kinds", "view"]
