"""The report as a Markdown page, made from its JSON alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

SHOWN: Final = 200
"""So many spans or faults of a partition or topic are listed. The JSON has all."""


def page_of(report: Mapping[str, Any], key_id: str | None) -> str:
    return "\n".join(_lines(report, key_id)) + "\n"


def _lines(report: Mapping[str, Any], key_id: str | None) -> Iterator[str]:
    made = datetime.fromtimestamp(report["made_ms"] / 1000, UTC).isoformat(timespec="seconds")
    verdict = "Everything that was looked at is as it was archived." if report["succeeded"] else "**There are faults.**"
    yield from ("# Verification of archived topics", "", verdict, "")
    yield f"Made {made} by archiver {report['archiver']} on {report['host']}. " + (
        f"Signed with Ed25519 by key `{key_id}`." if key_id else "Not signed."
    )
    yield ""
    for topic in report["topics"]:
        yield from _topic(topic)
    for failure in report["failed"]:
        yield from (f"## {failure['topic']}", "", f"**Could not be verified.** {_cell(failure['error'])}", "")


def _topic(topic: Mapping[str, Any]) -> Iterator[str]:
    count = len(topic["faults"])
    state = "proven" if topic["succeeded"] else f"{count:,} {'fault' if count == 1 else 'faults'}"
    yield from (f"## {topic['topic']}: {state}", "")
    yield from ("| | |", "|---|---|")
    compared = topic["compared_with_kafka"]
    facts = {
        "root digest": f"`{topic['root']}`",
        "digest of all records": f"`{topic['digest']}`",
        "records proven": f"{topic['records']:,}",
        "files read": f"{topic['files']:,}, {topic['size_bytes']:,} bytes",
        "compared with Kafka": "no" if compared is None else f"{compared:,} records",
        "table": f"{topic['table']}, UUID {topic['table_uuid']}, snapshot {topic['snapshot_id']}",
        "topic": f"{topic['topic']}, id {topic['topic_id'] or 'unknown'}, cluster {topic['cluster_id']}",
        **{f"source: {name}": text for name, text in sorted(topic["sources"].items())},
    }
    for name, text in facts.items():
        yield f"| {name} | {_cell(text)} |"
    yield ""
    if topic["faults"]:
        yield from ("| fault | where | what |", "|---|---|---|")
        for fault in topic["faults"][:SHOWN]:
            yield f"| {fault['kind']} | {_cell(_place(fault))} | {_cell(fault['message'])} |"
        yield from _more(topic["faults"])
    for note in topic["notes"]:
        yield f"- {note}"
    if topic["notes"]:
        yield ""
    for partition in topic["partitions"]:
        yield from _partition(partition)


def _partition(one: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"### Partition {one['partition']}: {one['records']:,} records, up to offset {one['end_offset']}", "")
    if one["proven"]:
        yield from ("| proven offsets | records | digest | by |", "|---|---:|---|---|")
        for entry in one["proven"][:SHOWN]:
            yield f"| {_span(entry)} | {entry['rows']:,} | `{entry['digest']}` | {entry['proof']} |"
        yield from _more(one["proven"])
    if one["gaps"]:
        counts = Counter[str]()
        for entry in one["gaps"]:
            counts[entry["kind"]] += entry["count"]
        yield "Gaps: " + ", ".join(f"{kind} {number:,}" for kind, number in sorted(counts.items()))
        yield from ("", "| gap | offsets | number |", "|---|---|---:|")
        for entry in one["gaps"][:SHOWN]:
            yield f"| {entry['kind']} | {_span(entry)} | {entry['count']:,} |"
        yield from _more(one["gaps"])


def _more(listed: Sequence[object]) -> Iterator[str]:
    if len(listed) > SHOWN:
        yield f"\n{len(listed) - SHOWN:,} more are in the JSON."
    yield ""


def _span(each: Mapping[str, Any]) -> str:
    return f"[{each['start_offset']}, {each['end_offset']})"


def _place(fault: Mapping[str, Any]) -> str:
    parts = [f"partition {fault['partition']}"] if "partition" in fault else []
    if "start_offset" in fault:
        parts.append(_span(fault))
    return " ".join([*parts, *([fault["file"]] if "file" in fault else [])])


def _cell(text: str) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
