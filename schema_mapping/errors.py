"""The error tree of `schema_mapping`, and the base that every package's tree grows from.

ContextError
└── SchemaMappingError
    ├── DescriptorError      a schema that cannot be read or does not hold the message asked for
    ├── MappingOptionsError  limits that no mapping can have
    ├── EvolutionError       a schema change that the ledger cannot take
    └── KernelError          rows or values handed to the kernel do not fit the mapping
        └── RowsTooLargeError    values that make more than 2 GiB of a column together, and must be split
"""

from __future__ import annotations

from typing import Any, ClassVar

from schema_mapping.secrets import without_secrets


class ContextError(Exception):
    """An error for the person who reads it: what went wrong, where, and what to do.

    `context` holds the places (topic, partition, offset, file, key) as keywords; they are printed after the message.
    `retryable` says whether the same call may succeed later without anybody changing anything. Secrets in URIs, those
    of other people's messages too, are left out.
    """

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, /, **context: Any) -> None:
        self.message = without_secrets(message)
        self.context = {
            name: without_secrets(each) if isinstance(each, str) else each for name, each in context.items()
        }
        super().__init__(self.message)

    def __str__(self) -> str:
        if not self.context:
            return self.message
        where = ", ".join(f"{name}={value!r}" for name, value in self.context.items())
        return f"{self.message} [{where}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.context)


def _rebuild(kind: type[ContextError], message: str, context: dict[str, Any]) -> ContextError:
    return kind(message, **context)


class SchemaMappingError(ContextError):
    """Root of what `schema_mapping` raises. Bad payloads never raise: they end in `__err__`."""


class DescriptorError(SchemaMappingError):
    """A schema that cannot be read, or does not hold the message asked for."""


class MappingOptionsError(SchemaMappingError):
    """Limits that no mapping can have."""


class EvolutionError(SchemaMappingError):
    """A schema change that the ledger cannot take, or a history of changes that contradicts itself."""


class KernelError(SchemaMappingError):
    """Rows or values handed to the kernel do not fit the mapping."""


class RowsTooLargeError(KernelError):
    """Values that make more than 2 GiB of a column together: they must be split."""
