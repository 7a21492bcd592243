"""Old commits of a journal in one object: each entry as it stood, under the name that it had alone (docs/adr/0028)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from catalog.errors import RegistryOutdated
from catalog.journal import FORMAT, JournaledCommit

MERGED_FORMAT: Final = 2
"""Archivers that know single commits only refuse it as a newer format, rather than miss what is in it."""


def merged(entries: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The object that holds these commits by name."""
    value = {"format": MERGED_FORMAT, "commits": dict(sorted(entries.items()))}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def commits_in(name: str, value: Mapping[str, Any]) -> Iterator[tuple[str, JournaledCommit]]:
    """The commits by name in an object with this name, be it one commit's or that of many.

    RegistryOutdated where a newer archiver wrote it.
    """
    if value.get("format") not in (FORMAT, MERGED_FORMAT):
        raise RegistryOutdated(
            "the journal was written by a newer archiver: upgrade this one", found=value.get("format")
        )
    entries = value["commits"] if value["format"] == MERGED_FORMAT else {name: value}
    for each, entry in entries.items():
        yield each, JournaledCommit.from_json(entry)
