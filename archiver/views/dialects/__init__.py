"""How each engine writes a view. One module an engine, all behind `Dialect`; `dialect_of` is the only list of them."""

from archiver.views.dialects.dialect import Dialect, Place
from archiver.views.dialects.engines import dialect_of
from archiver.views.dialects.query import query, statement

__all__ = ["Dialect", "Place", "dialect_of", "query", "statement"]
