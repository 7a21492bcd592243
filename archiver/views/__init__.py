"""Views that flatten a topic's table, made from its metadata alone, in each engine's SQL (docs/views.md)."""

__all__ = ["catalog_view", "choice", "dialects", "kinds", "view"]
