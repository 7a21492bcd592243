"""Which file an error is about, so that jobs name it and go on with the others."""

from __future__ import annotations

from collections.abc import Collection

from schema_mapping.errors import ContextError


def blamed_file(error: ContextError, paths: Collection[str]) -> str | None:
    """The one of these files that the error names. None where it names none of them."""
    return next((each for each in error.context.values() if isinstance(each, str) and each in paths), None)
