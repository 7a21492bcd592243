"""How well engines read the reference topics (docs/engines)."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyiceberg.schema import Schema

from tests.support.archive.canonical_rows import canonical, canonical_rows
from tests.support.archive.engine_readers import Reader
from tests.support.archive.reference_topic import ReferenceTopic
from tests.support.archive.type_cases import CHANGES, FIELDS, FROM_OFFSET, TYPES, Case, FieldCase, Level, level
from tests.support.servers.stack import Stack

KEPT = Path(__file__).parents[3] / "docs" / "engines" / "types.json"
PAGE = KEPT.parents[1] / "engines.md"
ENGINES = {
    "spark": "Spark",
    "trino": "Trino",
    "duckdb": "DuckDB",
    "pyiceberg": "pyiceberg",
    "polars": "Polars",
    "clickhouse": "ClickHouse",
    "datafusion": "DataFusion",
}
TABLES: Mapping[str, Sequence[Case | FieldCase]] = {"types": TYPES, "changes": CHANGES, "fields": FIELDS}
TITLES = {"types": "columns", "changes": "after a change of the schema", "fields": "a query for"}
MARKS: Mapping[str, str] = {"right": "yes", "nulls": "nulls", "wrong": "**wrong**", "fails": "**fails**"}


class Findings:
    def __init__(self, stack: Stack, topics: Mapping[str, ReferenceTopic], reader: Callable[[str], Reader]) -> None:
        self._topics = topics
        self._schema = functools.cache(lambda topic: stack.catalog().load_table(topics[topic].table).schema())
        self._reader = functools.cache(reader)
        self._rows = functools.cache(self._read)
        self.errors: dict[tuple[str, str], Exception] = {}
        """What engines said, by engine and title of the case."""

    def find(self, engine: str, case: Case | FieldCase) -> Level:
        try:
            if isinstance(case, FieldCase):
                return self._field(engine, case)
            result = self._rows(engine, case.topic, case.column)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is a finding
            self.errors[engine, case.title] = error
            return "fails"
        if isinstance(result, Exception):
            self.errors[engine, case.title] = result
            return "fails"
        return level(result, self._topics[case.topic].rows, case, self._schema(case.topic))

    def _read(self, engine: str, topic: str, column: str) -> list[dict[str, Any]] | Exception:
        reader = self._reader(engine)
        try:
            return reader.column(self._topics[topic].table, column)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is a finding
            return error

    def _field(self, engine: str, case: FieldCase) -> Level:
        topic, schema = self._topics[case.topic], self._schema(case.topic)
        rows = self._reader(engine).field(topic.table, case.path, FROM_OFFSET)
        kind = schema.find_field(".".join(case.path)).field_type
        result = sorted(((p, o, canonical(value, kind)) for p, o, value in rows), key=lambda row: row[:2])
        return "right" if result == expected_fields(topic, schema, case) else "wrong"


def expected_fields(topic: ReferenceTopic, schema: Schema, case: FieldCase) -> list[tuple[int, int, Any]]:
    rows = []
    for row in canonical_rows(topic.rows, schema):
        value: Any = row
        for name in case.path:
            value = None if value is None else value[name]
        if row["kafka"]["offset"] >= FROM_OFFSET:
            rows.append((row["kafka"]["partition"], row["kafka"]["offset"], value))
    return rows


def kept() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return result


def keep(found: Mapping[str, Any]) -> None:
    KEPT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


def page(text: str, found: Mapping[str, Any]) -> str:
    for table, title in TITLES.items():
        start, end = f"<!-- {table}: written by make interop RECORD=1 -->", f"<!-- end of {table} -->"
        before, _, rest = text.partition(start)
        _, _, after = rest.partition(end)
        text = f"{before}{start}\n{_markdown(title, found[table])}\n{end}{after}"
    return text


def _markdown(title: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    lines = [f"| {title} | {' | '.join(ENGINES.values())} |", f"|---|{'---|' * len(ENGINES)}"]
    for case, result in rows.items():
        lines.append(f"| {case} | {' | '.join(MARKS[result[name]] for name in ENGINES)} |")
    return "\n".join(lines)
