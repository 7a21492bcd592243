"""Flat views of a topic's table, made from its metadata alone (docs/views.md)."""

__all__ = ["catalog_view", "choice", "dialects", "kinds", "view"]
