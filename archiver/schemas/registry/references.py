"""The direct and indirect references of a registered schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from archiver.errors import BadSchema
from archiver.schemas.registry.contexts import context_of
from archiver.schemas.registry.requests import Answer, RegistryRequests

MOST_REFERENCES: Final = 1_000


class SchemaReferences:
    """A cache: versions never change. Not thread-safe."""

    def __init__(self, requests: RegistryRequests) -> None:
        self._requests = requests
        self._versions: dict[tuple[str, int, str, str | None], Answer] = {}

    def texts(self, found: Answer, context: str, form: str | None, *, is_guid: bool) -> Iterator[tuple[str, str]]:
        """In their schema's context. Raises as `RegistryHttp`.

        A GUID's may be of another context: the default will do, because only message names are read. Raises BadSchema
        for a missing reference or more than MOST_REFERENCES.
        """
        seen: set[str] = set()
        pending = [(reference, context) for reference in found.get("references") or ()]
        while pending:
            reference, parent = pending.pop()
            name = str(reference["name"])
            if name in seen:
                continue
            if len(seen) >= MOST_REFERENCES:
                raise BadSchema("a schema refers to too many others", limit=MOST_REFERENCES)
            seen.add(name)
            subject, version = str(reference["subject"]), int(reference["version"])
            target = self._version(subject, version, parent, form)
            if target is None and is_guid and parent:
                target = self._version(subject, version, "", form)
            if target is None:
                raise BadSchema(
                    "a schema refers to one that the schema registry doesn't have", subject=subject, version=version
                )
            inner = context_of(subject) or parent
            pending.extend((further, inner) for further in target.get("references") or ())
            yield name, str(target["schema"])

    def _version(self, subject: str, version: int, context: str, form: str | None) -> Answer | None:
        key = subject, version, context, form
        if key not in self._versions:
            answer = self._requests.version(subject, version, context, form)
            if answer is None:
                return None
            self._versions[key] = answer
        return self._versions[key]
