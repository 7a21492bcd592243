"""The errors of `schema_mapping`, and `ContextError`, the base class of every package's errors.

ContextError
└── SchemaMappingError
    ├── DescriptorError      a schema can't be read, or doesn't hold the message that was asked for
    ├── MappingOptionsError  the limits given are outside what a mapping allows
    ├── EvolutionError       the ledger can't take a schema change
    └── KernelError          rows or values given to the kernel don't fit the mapping
        └── RowsTooLargeError    the values together need more than 2 GiB of one column: split them
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from schema_mapping.secrets import without_secrets


class ContextError(Exception):
    """An error written for the person who reads it: what went wrong, where, and what to do.

    `context` holds the places (topic, partition, offset, file, key) as keywords; they are printed after the message.
    `retryable` says whether the same call may succeed later although nobody changes anything. Secrets in URIs are left
    out, also those in messages of other libraries.
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

    def placed(self, **context: Any) -> Self:
        """Add where it happened, as far as the error doesn't say so itself; return it."""
        self.context = {**context, **self.context}
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.context)


def _rebuild(kind: type[ContextError], message: str, context: dict[str, Any]) -> ContextError:
    return kind(message, **context)


class SchemaMappingError(ContextError):
    """Base class of the errors of `schema_mapping`. Bad payloads never raise: they get a code in `__err__`."""


class DescriptorError(SchemaMappingError):
    """A schema can't be read, or doesn't hold the message that was asked for."""


class MappingOptionsError(SchemaMappingError):
    """The limits given are outside what a mapping allows."""


class EvolutionError(SchemaMappingError):
    """The ledger can't take a schema change, or a history of changes contradicts itself."""


class KernelError(SchemaMappingError):
    """Rows or values given to the kernel don't fit the mapping."""


class RowsTooLargeError(KernelError):
    """The values together need more than 2 GiB of one column: the caller must split them."""
