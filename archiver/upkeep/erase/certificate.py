"""The certificate of an erasure, as signed JSON and HTML.

Without condition (maybe a person's name) and salt (which would prove it).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Final

from archiver.audit.documents import put_document
from archiver.audit.entry import Author
from archiver.audit.signing import SigningKey
from archiver.html_page import html_page
from archiver.upkeep.erase.plan import PlanReport
from archiver.upkeep.erase.report import EraseReport
from schema_mapping.errors import ContextError

FORMAT: Final = 1
KIND: Final = "archiver erase"
PAGE: Final = ".html"
CERTIFICATE: Final = "certificate"
"""What errors call the document."""
FINISHED: Final = "finished"
NOT_FINISHED: Final = "not finished"
CUT_SHORT: Final = "search cut short"
GIVEN_UP: Final = "given up"
_SHOWN: Final = 200
"""The page lists at most this many spans of a topic. The JSON has all."""


def document_of(report: PlanReport, author: Author) -> dict[str, Any]:
    """Return JSON values, without fractions."""
    return {
        "format": FORMAT,
        "kind": KIND,
        "made_ms": time.time_ns() // 1_000_000,
        "archiver": author.version,
        "host": author.host,
        "principal": author.principal,
        "reason": report.plan.reason,
        "succeeded": report.succeeded,
        "records": sum(topic.rows for topic in report.reports),
        "topics": [_topic_json(topic, is_finish=not report.plan.erasures) for topic in report.reports],
        "failed": [{"topic": topic, "error": _text(error)} for topic, error in sorted(report.errors.items())],
    }


def write_certificate(report: PlanReport, path: Path, key: SigningKey, author: Author) -> tuple[str, str]:
    """Write JSON and page, each atomically; return their paths. Raises ConfigError."""
    document = document_of(report, author)
    signed = {"certificate": document, "signature": key.sign(document).to_json()}
    page = path.with_name(path.name + PAGE)
    put_document(path, json.dumps(signed, indent=1, ensure_ascii=False) + "\n", CERTIFICATE)
    put_document(page, page_of(document, key.id), CERTIFICATE)
    return str(path), str(page)


def page_of(document: Mapping[str, Any], key_id: str) -> str:
    return html_page("Certificate of erasure", "\n".join(_lines(document, key_id)))


def _topic_json(report: EraseReport, *, is_finish: bool) -> dict[str, Any]:
    return {
        "topic": report.topic,
        "table": report.table,
        "succeeded": report.succeeded,
        "is_finish": is_finish,
        "erasure": report.erasure,
        "condition_hash": report.condition_hash,
        "records": report.rows,
        "offset_count": report.offset_count,
        "files_rewritten": report.files,
        "objects_deleted": report.purged.deleted,
        "offsets": [list(span) for span in report.spans],
        "commits": list(report.commits),
        "not_finished": list(report.unfinished),
        "open_erasures": [
            {"erasure": erasure, "condition_hash": digest, "state": _state(report, erasure)}
            for erasure, digest in sorted(report.conditions.items())
        ],
        "erased_offsets": [list(span) for span in report.erased],
        "not_judged_records": sum(report.unjudged_records.values()),
        "doubtful": list(report.doubtful),
        "copies_left": [*report.copies, *report.local],
        "partition_columns": list(report.partition_columns),
        "failures": [{"file": path, "error": _text(error)} for path, error in sorted(report.failures.items())],
    }


def _state(report: EraseReport, erasure: str) -> str:
    if erasure in report.finished:
        return FINISHED
    if erasure in report.given_up:
        return GIVEN_UP
    return CUT_SHORT if erasure in report.unsearched else NOT_FINISHED


def _earlier(topic: Mapping[str, Any], state: str) -> list[str]:
    earlier = (entry for entry in topic["open_erasures"] if entry["erasure"] != topic["erasure"])
    return [entry["erasure"] for entry in earlier if entry["state"] == state]


def _lines(document: Mapping[str, Any], key_id: str) -> Iterator[str]:
    made = datetime.fromtimestamp(document["made_ms"] / 1000, UTC).isoformat(timespec="seconds")
    yield "<h1>Certificate of erasure</h1>"
    topics = document["topics"]
    has_earlier = any(_earlier(topic, FINISHED) for topic in topics)
    if document["succeeded"] and not document["records"] and not has_earlier:
        is_finish = all(topic["is_finish"] for topic in topics)
        outcome = "No erasure was open" if is_finish else "The search found no such records"
        yield f"<p><strong>{outcome}: nothing was erased now.</strong></p>"
    elif document["succeeded"]:
        yield "<p><strong>No object of the archive has the records any more.</strong></p>"
    else:
        yield "<p><strong>The erasure is not finished: see below what is left.</strong></p>"
    facts = {
        "reason": document["reason"] or "not given",
        "records": f"{document['records']:,}",
        "made": f"{made} by archiver {document['archiver']} on {document['host']}, {document['principal']}",
        "signature": f"Ed25519, key {key_id}, in the JSON file beside this page",
    }
    yield from _table(facts)
    if any(_earlier(topic, GIVEN_UP) for topic in topics):
        yield (
            "<p><strong>Earlier erasures were given up: their search was cut short, and a later one ended. Of their "
            "records nothing is said, unless their condition was the same.</strong></p>"
        )
    for topic in topics:
        yield from _topic(topic)
    for failed in document["failed"]:
        yield f"<h2>{escape(failed['topic'])}</h2><p><strong>Not erased.</strong> {escape(failed['error'])}</p>"
    yield "<p>Records in Kafka, in backups and in exports are not part of this certificate.</p>"


def _topic(topic: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2>{escape(topic['topic'])}</h2>"
    yield from _table(
        {
            "table": topic["table"],
            "state": "erased" if topic["succeeded"] else "not finished",
            "records": f"{topic['records']:,}",
            "offsets, including retired records that were still stored": f"{topic['offset_count']:,}",
            "files rewritten": f"{topic['files_rewritten']:,}",
            "objects deleted": f"{topic['objects_deleted']:,}",
            "erasure": topic["erasure"] or ("" if topic["is_finish"] else "none: no such records"),
            "commits": ", ".join(topic["commits"]),
            "hash of the condition": topic["condition_hash"],
            "records that could not be judged": f"{topic['not_judged_records']:,}",
            "erasures not finished": ", ".join(topic["not_finished"]),
            "erasures whose search was cut short": ", ".join(_earlier(topic, CUT_SHORT)),
            "earlier erasures finished now": ", ".join(_earlier(topic, FINISHED)),
            "earlier erasures given up": ", ".join(_earlier(topic, GIVEN_UP)),
            "copies left": ", ".join(topic["copies_left"]),
            "columns whose values stay in manifests": ", ".join(topic["partition_columns"]),
            "files that failed": ", ".join(failure["file"] for failure in topic["failures"]),
        }
    )
    yield from _offsets(topic["offsets"])
    if any(_earlier(topic, state) for state in (FINISHED, NOT_FINISHED, CUT_SHORT)):
        gone = "Offsets of which no object has a record any more" if topic["succeeded"] else "Offsets of open erasures"
        yield f"<p>{gone}, with the offsets of earlier erasures of the topic:</p>"
        yield from _offsets(topic["erased_offsets"])


def _offsets(spans: Sequence[Sequence[int]]) -> Iterator[str]:
    if not spans:
        return
    yield "<table><tr><th>partition</th><th>first offset</th><th>last offset</th></tr>"
    for partition, start, end in spans[:_SHOWN]:
        yield f"<tr><td>{partition}</td><td>{start:,}</td><td>{end - 1:,}</td></tr>"
    yield "</table>"
    if (more := len(spans) - _SHOWN) > 0:
        yield f"<p>{more:,} more spans are in the JSON file.</p>"


def _table(facts: Mapping[str, str]) -> Iterator[str]:
    yield "<table>"
    yield from (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts.items() if text)
    yield "</table>"


def _text(error: ContextError) -> str:
    return f"{type(error).__name__}: {error}"
