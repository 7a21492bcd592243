"""Views of archived topics in a DuckDB connection.

Example::

    import duckdb
    from archiver.views.duckdb import register

    connection = duckdb.connect()
    register(connection, "archiver.toml", "orders")
    connection.sql("SELECT customer, count(*) FROM orders_flat GROUP BY ALL")
"""

from archiver.views.duckdb.catalog import attach
from archiver.views.duckdb.topics import register

__all__ = ["attach", "register"]
