"""Check that a topic's table has everything archived, and compare rows at the end of a run."""

from __future__ import annotations

import logging
from functools import partial

from archiver.commit.compare_rows import Allowance, compare_rows
from archiver.commit.table_check import check_archive, rows_altered
from archiver.ingest.topic.report_builder import TopicReportBuilder
from archiver.storage.formats import SegmentFormats
from archiver.topics.opening import OpenedTopic
from catalog.errors import CatalogUnreachable, RolledBack, RowsAltered
from catalog.iceberg.table_catalog import TableCatalog
from catalog.registry import Registry
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)


class KeptRows:
    """Faults go into the report; none while the catalog is down."""

    def __init__(
        self, registry: Registry, catalog: TableCatalog, report: TopicReportBuilder, *, formats: SegmentFormats
    ) -> None:
        self._registry = registry
        self._catalog = catalog
        self._report = report
        self._formats = formats
        self._altered: RowsAltered | None = None
        self._has_uncompared = False

    def look(self, opened: OpenedTopic) -> None:
        """Raises RolledBack."""
        error: ContextError | None
        try:
            check = check_archive(
                opened.topic,
                self._registry,
                partial(self._catalog.reload, opened.table),
                known=None if opened.table.is_recalled else opened.table,
                formats=self._formats,
            )
            error, self._has_uncompared = check.error, check.has_uncompared
        except CatalogUnreachable:
            return
        except ContextError as unreadable:
            error = unreadable
        if isinstance(error, RolledBack):
            raise error
        if isinstance(error, RowsAltered):
            self._altered = error  # reported by `compare`, which may find them mended
        elif error is not None:
            self._report.warn(error)

    def compare(self, opened: OpenedTopic, allowance: Allowance) -> None:
        """Only rows that other engines may have written."""
        altered, waiting = self._altered, 0
        load = partial(self._catalog.reload, opened.table)
        try:
            if self._has_uncompared and not self._report.failed:
                compared = compare_rows(opened.topic, self._registry, load, allowance, formats=self._formats)
                if compared is not None:
                    altered = rows_altered(load(), compared) if compared.altered else None
                    waiting = compared.uncompared_rows
        except CatalogUnreachable:
            pass
        except ContextError as unreadable:
            self._report.warn(unreadable)
        if altered is not None:
            self._report.warn(altered)
        if waiting:
            _LOG.warning(
                "%s: %d records that others may have changed are not compared yet; the next run goes on",
                opened.topic.topic,
                waiting,
            )
