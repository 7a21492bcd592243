"""Postgres failures as registry errors: what went wrong, and a safe remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from catalog.errors import RegistryDenied, RegistryError, RegistryPooled, RegistryUnreachable
from catalog.registry.pooling import POOLED, POOLER_ERRORS


@contextmanager
def registry_errors(where: Mapping[str, Any]) -> Iterator[None]:
    """Translate psycopg's exceptions to RegistryError. `where` names the server."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        msg = f"the registry's user lacks a right: {said(error)}. Grant it, or connect as the owner"
        raise RegistryDenied(msg, **where) from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        msg = f"the registry's database takes no changes here: {said(error)}. Connect to the primary to write"
        raise RegistryDenied(msg, **where) from error
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
        msg = f"the registry did not finish the call: {said(error)}"
        raise RegistryUnreachable(msg, **where) from error
    except POOLER_ERRORS as error:
        raise RegistryPooled(POOLED, **where) from error
    except psycopg.errors.DataCorrupted as error:
        msg = (
            f"the registry's database is damaged: {said(error)}. Restore it from a backup; or run"
            " `archiver registry rebuild` into an empty database beside it, which comes without the offsets of"
            " groups and the users of `archiver serve kafka`"
        )
        raise RegistryError(msg, **where) from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
        msg = (
            f"the registry lacks a table or a column: {said(error)}. Look whether the dsn names the registry's"
            " database, whether the user's search_path has its schema, and whether a pooler in front of it is in"
            " session mode; if another program changed the tables, undo that"
        )
        raise RegistryError(msg, **where) from error
    except psycopg.Error as error:
        msg = (
            f"Postgres refused a statement of the archiver, and took back its transaction: {said(error)}. The"
            " server's log says more; the registry stays as it was"
        )
        raise RegistryError(msg, **where) from error


def said(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rpartition("FATAL:")[2].strip()
