"""The report as documents: JSON that can be signed, and a page for people."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from archiver.audit.documents import put_document
from archiver.audit.signing import PublicKey, Signature, SigningKey
from archiver.errors import ConfigError, SignatureInvalid
from archiver.html_page import page_from_markdown
from archiver.upkeep.verify.page import page_of
from archiver.upkeep.verify.report import VerifiedPartition, VerifiedTopic, VerifyReport, root_of
from schema_mapping.errors import ContextError

FORMAT: Final = 1
KIND: Final = "archiver verify"
PAGE: Final = ".md"
HTML: Final = ".html"
REPORT: Final = "report"
"""What errors call the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedReport:
    """`key_id` is None if only the roots were checked."""

    report: Mapping[str, Any]
    key_id: str | None

    @property
    def page(self) -> str:
        return page_of(self.report, self.key_id)


def document_of(report: VerifyReport) -> dict[str, Any]:
    """Return JSON values, without fractions."""
    return {
        "format": FORMAT,
        "kind": KIND,
        "made_ms": time.time_ns() // 1_000_000,
        "archiver": _version(),
        "host": platform.node(),
        "milliseconds": int(report.seconds * 1000),
        "succeeded": report.succeeded,
        "topics": [topic_json(topic) for topic in report.topics],
        "failed": [{"topic": failure.topic, "error": _text(failure.error)} for failure in report.failed],
    }


def topic_json(topic: VerifiedTopic) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "table": topic.table,
        "cluster_id": topic.cluster_id,
        "topic_id": topic.topic_id,
        "table_uuid": topic.table_uuid,
        "snapshot_id": topic.snapshot_id,
        "succeeded": topic.succeeded,
        "root": topic.root,
        "digest": topic.digest,
        "records": topic.rows,
        "files": topic.files,
        "size_bytes": topic.size_bytes,
        "resumed_files": topic.resumed_files,
        "records_in_files_of_others": topic.moved_rows,
        "compared_with_kafka": topic.compared_rows,
        "milliseconds": int(topic.seconds * 1000),
        "sources": dict(topic.sources),
        "notes": list(topic.notes),
        "partitions": [_partition_json(partition) for partition in topic.partitions],
        "faults": [fault.to_json() for fault in topic.faults],
    }


def write_report(report: VerifyReport, path: Path, key: SigningKey | None) -> tuple[str, ...]:
    """Write JSON, Markdown and HTML, each atomically; return their paths."""
    document = document_of(report)
    signed: dict[str, Any] = {"report": document, "signature": key.sign(document).to_json() if key else None}
    page, html = (path.with_name(path.name + suffix) for suffix in (PAGE, HTML))
    text = page_of(document, key.id if key else None)
    put_document(path, json.dumps(signed, indent=1, ensure_ascii=False) + "\n", REPORT)
    put_document(page, text, REPORT)
    put_document(html, page_from_markdown("Verification of archived topics", text), REPORT)
    return str(path), str(page), str(html)


def check_report(path: Path, public_key: Path | None) -> CheckedReport:
    """Check signature and roots. Without a key only the roots: a forger could recompute them.

    Raises SignatureInvalid if the report was changed, ConfigError if unreadable.
    """
    try:
        value = json.loads(path.read_bytes())
        document = value["report"]
        signature = value["signature"]
        parsed = None if signature is None else Signature.from_json(signature)
        if document["kind"] != KIND or document["format"] > FORMAT:
            raise ConfigError("The file is no report that this archiver can read", file=str(path))
        roots = [
            (
                topic["root"],
                root_of(
                    cluster_id=topic["cluster_id"],
                    topic=topic["topic"],
                    topic_id=topic["topic_id"],
                    partitions={partition["partition"]: partition["proven"] for partition in topic["partitions"]},
                ),
            )
            for topic in document["topics"]
        ]
    except OSError as error:
        raise ConfigError("The report can't be read", file=str(path), cause=str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SignatureInvalid(
            "the report is damaged, or it is no report", file=str(path), cause=repr(error)
        ) from error
    if public_key is not None:
        if parsed is None:
            raise SignatureInvalid("the report isn't signed: set `signing_key` in [audit]", file=str(path))
        PublicKey.load(public_key).check(document, parsed)
    if any(reported != made for reported, made in roots):
        raise SignatureInvalid(
            "a root digest isn't that of the ranges that the report lists: it was changed", file=str(path)
        )
    return CheckedReport(report=document, key_id=parsed.key_id if parsed and public_key else None)


def _partition_json(one: VerifiedPartition) -> dict[str, Any]:
    return {
        "partition": one.partition,
        "end_offset": one.end_offset,
        "records": one.rows,
        "proven": [span.to_json() for span in one.proven],
        "gaps": [gap.to_json() for gap in one.gaps],
    }


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if isinstance(error, ContextError) else str(error)


def _version() -> str:
    try:
        return version("kafka-iceberg-archiver")
    except PackageNotFoundError:
        return "unknown"
