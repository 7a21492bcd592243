"""Views that flatten a topic's table, in each engine's SQL (docs/views.md).

They are made from the table's metadata alone: no data files, Kafka or Postgres.
"""

__all__ = ["catalog_view", "choice", "dialects", "kinds", "view"]
