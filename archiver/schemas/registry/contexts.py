"""Contexts of a schema registry: each has subjects and ids of its own. A subject names its context: `:.team:orders`.

Subjects without a context are in the default context. These are the rules of Confluent's `QualifiedSubject`.
"""

from __future__ import annotations

from typing import Final

_QUALIFIED: Final = ":."
_DEFAULT: Final = ":.:"


def context_of(subject: str | None) -> str:
    """The context of a subject, such as `:.team:`. Empty for the default context."""
    if subject is None or not subject.startswith(_QUALIFIED):
        return ""
    context = f":{subject[1:].partition(':')[0]}:"
    return "" if context == _DEFAULT else context


def in_context(subject: str, context: str) -> str:
    """The subject that a schema in `context` refers to: in the same context, unless it names one."""
    return subject if subject.startswith(_QUALIFIED) else f"{context}{subject}"
