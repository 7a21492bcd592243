"""The errors of `schema_mapping`, and `ContextError`, the base class of every package's errors.

ContextError
└── SchemaMappingError
    ├── DescriptorError      a schema can't be read, or doesn't hold the message that was asked for
    ├── MappingOptionsError  the limits given are outside what a mapping allows
    ├── EvolutionError       the ledger can't take a schema change
    └── KernelError          rows or values given to the kernel don't fit the mapping
        └── RowsTooLargeError    the values together need more than 2 GiB of one column, or 1 GiB of rows: split them
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from schema_mapping.secrets import without_secrets


class ContextError(Exception):
    """An error for the person who reads it.

    `context` is printed after the message. `retryable`: the same call may succeed later. Secrets in URIs are removed.
    """

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, /, **context: Any) -> None:
        self.message = without_secrets(message)
        self.context = {
            name: without_secrets(value) if isinstance(value, str) else value for name, value in context.items()
        }
        super().__init__(self.message)

    def __str__(self) -> str:
        if not self.context:
            return self.message
        where = ", ".join(f"{name}={value!r}" for name, value in self.context.items())
        return f"{self.message} [{where}]"

    def placed(self, **context: Any) -> Self:
        """Add missing context."""
        self.context = {**context, **self.context}
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.context)


def _rebuild(kind: type[ContextError], message: str, context: dict[str, Any]) -> ContextError:
    return kind(message, **context)


class SchemaMappingError(ContextError):
    """Bad payloads get a code in `__err__` instead."""


class DescriptorError(SchemaMappingError):
    """The schema can't be read, or lacks the requested message."""


class MappingOptionsError(SchemaMappingError):
    """A limit outside the allowed range."""


class EvolutionError(SchemaMappingError):
    """The ledger can't take a schema change, or its history contradicts itself."""


class KernelError(SchemaMappingError):
    """Rows or values don't fit the mapping."""


class RowsTooLargeError(KernelError):
    """The values together exceed 2 GiB of one column, or 1 GiB of rows: split them."""
