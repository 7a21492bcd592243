"""Contexts, which have their own subjects and ids: `:.team:orders`.

Rules of Confluent's `QualifiedSubject`.
"""

from __future__ import annotations

from typing import Final

_QUALIFIED: Final = ":."
_DEFAULT: Final = ":.:"


def context_of(subject: str | None) -> str:
    """Return `:.team:`, empty for the default context."""
    if subject is None or not subject.startswith(_QUALIFIED):
        return ""
    context = f":{subject[1:].partition(':')[0]}:"
    return "" if context == _DEFAULT else context


def in_context(subject: str, context: str) -> str:
    return subject if subject.startswith(_QUALIFIED) else f"{context}{subject}"
