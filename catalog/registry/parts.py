"""Parts of the registry: methods from functions that take a connection, in a transaction by default."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from catalog.registry.postgres import Connection, Postgres

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class Part:
    """The base of the registry's parts."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres


def in_transaction(
    function: Callable[Concatenate[Connection, _Arguments], _Result],
) -> Callable[Concatenate[Part, _Arguments], _Result]:
    """A `Part` method that calls the function in a transaction."""

    @wraps(function)
    def method(self: Part, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with self._postgres.transaction() as connection:
            return function(connection, *args, **kwargs)

    return method


def in_statements(
    function: Callable[Concatenate[Connection, _Arguments], _Result],
) -> Callable[Concatenate[Part, _Arguments], _Result]:
    """Like `in_transaction`, without a transaction."""

    @wraps(function)
    def method(self: Part, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with self._postgres.statements() as connection:
            return function(connection, *args, **kwargs)

    return method
