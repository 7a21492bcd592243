"""Now and then after a commit: the registry's rows trimmed and the journal's commits put together (docs/adr/0028).

Nothing depends on it. By chance, so that it needs no memory: jobs that end after each run do it as often as others.
"""

from __future__ import annotations

import logging
import secrets
from typing import Final

from archiver.commit.committing import StagedTopic
from catalog.registry import Registry
from schema_mapping.errors import ContextError

ONE_IN: Final = 64
"""Of so many commits of a topic one is followed by it."""

_LOG = logging.getLogger(__name__)


def tidy_by_chance(opened: StagedTopic, registry: Registry) -> None:
    """Tidy after some commits. Failures are logged, not raised."""
    if secrets.randbelow(ONE_IN) == 0:
        tidy(opened, registry)


def tidy(opened: StagedTopic, registry: Registry) -> None:
    """Trim the topic's old rows, and put old commits of its journal together. Failures are logged, not raised."""
    for step in (lambda: registry.files.trim(opened.topic), opened.journal.merge_commits):
        try:
            step()
        except ContextError:
            _LOG.warning("what is old of %s stays as it is for now", opened.topic.topic, exc_info=True)
