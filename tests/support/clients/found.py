"""docs/compatibility.json, and the page that shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

_DOCS: Final = Path(__file__).parents[3] / "docs"
KEPT: Final = _DOCS / "compatibility.json"
PAGE: Final = _DOCS / "compatibility.md"
FEATURES: Final = {
    "records": "every record as Kafka's",
    "times": "timestamps at the ends of int64",
    "by time": "offsets by time",
    "group": "classic groups",
    "new group": "`group.protocol=consumer`",
    "tools": "its tools",
}
CLIENTS: Final = (
    "confluent-kafka",
    "java",
    "java-3",
    "java-next",
    "kafka-python",
    "aiokafka",
    "franz-go",
    "sarama",
    "kafkajs",
    "spark",
    "kafka-go",
    "platformatic",
    "rdkafka",
    "rskafka",
    "streams",
)
MISSING: Final = {
    "confluent-kafka": ("tools",),
    "kafka-go": ("new group", "tools"),
    "kafkajs": ("by time", "new group", "tools"),
    "platformatic": ("tools",),
    "rdkafka": ("tools",),
    "rskafka": ("times", "group", "new group", "tools"),
    "streams": ("times", "by time", "new group", "tools"),
    "kafka-python": ("new group", "tools"),
    "aiokafka": ("new group", "tools"),
    "franz-go": ("new group", "tools"),
    "sarama": ("new group", "tools"),
    "spark": ("times", "by time", "group", "new group", "tools"),
}
"""What clients don't have. Spark's source has no groups, and timestamps of microseconds."""
PLAIN: Final = frozenset({"@platformatic/kafka", "rskafka", "segmentio/kafka-go"})
"""Clients that end on some of the odd records at Kafka too. They read a plain topic."""
PLAIN_RECORDS: Final = "plain topics"
NONE: Final = "-"
_START: Final = "<!-- clients: written by make interop RECORD=1 -->"
_END: Final = "<!-- end of clients -->"


def kept() -> dict[str, Any]:
    results: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return results


def keep(key: str, name: str, version: str, feature: str, found: str) -> None:
    results = kept()
    features = results.get(key, {}).get("features", {}) | {feature: found}
    results[key] = {
        "name": name,
        "version": version,
        "features": {item: features[item] for item in FEATURES if item in features},
    }
    results = {item: results[item] for item in CLIENTS if item in results}
    KEPT.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def page(text: str, found: dict[str, Any]) -> str:
    before, _, rest = text.partition(_START)
    _, _, after = rest.partition(_END)
    lines = [f"| client | {' | '.join(FEATURES.values())} |", f"|---|{'---|' * len(FEATURES)}"]
    for client in found.values():
        cells = [client["features"].get(feature, "not tried") for feature in FEATURES]
        lines.append(f"| {client['name']} {client['version']} | {' | '.join(cells)} |")
    table = "\n".join(lines)
    return f"{before}{_START}\n{table}\n{_END}{after}"
