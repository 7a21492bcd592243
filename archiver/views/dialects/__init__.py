"""Each engine's SQL for views, behind `Dialect`."""

from archiver.views.dialects.dialect import Dialect, Place
from archiver.views.dialects.engines import dialect_of
from archiver.views.dialects.query import query, statement

__all__ = ["Dialect", "Place", "dialect_of", "query", "statement"]
