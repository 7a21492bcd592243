"""`archiver verify`: show that a table has what was archived (docs/verify.md).

Changes only its state on local disk. Faults of a file or topic don't stop the remaining ones.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from archiver.audit.documents import check_place
from archiver.audit.signing import SigningKey
from archiver.config import Config
from archiver.engine.choice import EngineChoice
from archiver.engine.runner import Engine
from archiver.errors import ConfigError
from archiver.observer import all_of, ignore
from archiver.storage.formats import FORMATS
from archiver.upkeep.verify.choice import VerifyChoice
from archiver.upkeep.verify.document import REPORT, write_report
from archiver.upkeep.verify.file import AT_ONCE
from archiver.upkeep.verify.report import (
    TopicFailed,
    TopicVerified,
    VerifiedTopic,
    VerifyFinished,
    VerifyObserver,
    VerifyReport,
)
from archiver.upkeep.verify.sources import SourceFinder
from archiver.upkeep.verify.topic_run import TopicVerification
from catalog.errors import CatalogDenied, CatalogUnreachable
from catalog.iceberg.table_catalog import TableCatalog
from schema_mapping.errors import ContextError
from schema_mapping.formats import MODULES as VALUE_FORMAT_MODULES

_LOG = logging.getLogger(__name__)

MODULES: Final = ("archiver.upkeep.verify.file", *VALUE_FORMAT_MODULES)
"""What Spark's workers import before their first task."""
HEAPS: Final = AT_ONCE + 1
"""The heaps of a worker: one for each file that it decodes at a time, and one for the thread that waits for them."""

READ_HERE_BYTES: Final = 128 << 20
"""Files that have no more bytes than this together are read in this process: starting Spark would take longer."""
RESUMES_FOR: Final = 86_400.0
"""What an unfinished run has proven counts for so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """`metadata` (file or folder) replaces the catalog. `compares` reads the brokers.

    `resumes` continues an unfinished run.
    """

    compares: bool = False
    metadata: str | None = None
    asks_registry: bool = True
    resumes: bool = True
    path: Path | None = None


class Verify:
    """By default all configured and matching archived topics."""

    def __init__(
        self,
        config: Config,
        topics: Sequence[str] = (),
        observer: VerifyObserver = ignore,
        *,
        choice: VerifyChoice | None = None,
        options: VerifyOptions | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._config = config
        self._topics = tuple(dict.fromkeys(topics))
        self._observer = all_of(observer)
        self._choice = choice or VerifyChoice()
        self._options = options or VerifyOptions()
        self._engine = engine

    def run(self) -> VerifyReport:
        """Faults are in the report. Raises ConfigError before any work."""
        started = time.monotonic()
        topics: list[VerifiedTopic] = []
        failed: list[TopicFailed] = []
        engines = EngineChoice(
            self._config.spark, self._engine, here_bytes=READ_HERE_BYTES, preloaded=MODULES, heaps=HEAPS
        )
        key = self._checked(engines)
        with engines:
            for name in self._topics or self._configured():
                run = TopicVerification(
                    config=self._config,
                    finder=SourceFinder(
                        config=self._config,
                        topic=name,
                        metadata=self._options.metadata,
                        asks_registry=self._options.asks_registry,
                    ),
                    choice=self._choice,
                    engine=engines.of_bytes,
                    observer=self._observer,
                    formats=FORMATS,
                    compares=self._options.compares,
                    state_age=RESUMES_FOR if self._options.resumes else 0.0,
                )
                try:
                    topics.append(run.run())
                    self._observer(TopicVerified(report=topics[-1]))
                except ConfigError:
                    raise
                except ContextError as error:
                    failed.append(TopicFailed(topic=name, error=error))
                    self._observer(failed[-1])
        report = VerifyReport(topics=tuple(topics), failed=tuple(failed), seconds=time.monotonic() - started)
        paths = () if self._options.path is None else write_report(report, self._options.path, key)
        self._observer(VerifyFinished(report=report, paths=paths, is_signed=key is not None and bool(paths)))
        return report

    def _configured(self) -> tuple[str, ...]:
        archived: list[str] = []
        try:
            with TableCatalog(self._config.catalog) as catalog:
                for space in self._config.namespaces:
                    archived += catalog.archives(space).values()
        except (CatalogUnreachable, CatalogDenied) as error:
            _LOG.warning("topics that only a pattern names aren't verified: %s", error)
        return tuple(topic.name for topic in self._config.select(archived))

    def _checked(self, engines: EngineChoice) -> SigningKey | None:
        for name in self._topics:
            self._config.topic(name)
        if not self._topics and not self._config.sections:
            raise ConfigError("There is no topic to verify: name one as an argument, or add a [topics.NAME] section")
        if self._options.metadata is not None and len(self._topics) != 1:
            raise ConfigError("--metadata is of one topic's table: name that topic")
        engines.check()
        if self._options.path is not None:
            check_place(self._options.path, REPORT)
        key = self._config.audit.signing_key
        return None if key is None else SigningKey.load(key)
