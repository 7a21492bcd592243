"""Default table names, and templates for patterns."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

DEFAULT_NAMESPACE: Final = "kafka"

TABLE_NAME: Final = r"^[a-z0-9_]+(\.[a-z0-9_]+)+$"
TABLE_WORDS: Final = "the name of a table: write namespace.table, in lower-case letters, digits and _"

TEMPLATE: Final = r"^(\{namespace\}|[a-z0-9_]+)(\.[a-z0-9_]+)*\.([a-z0-9_]|\{topic\}|\{hash\})+$"
TEMPLATE_WORDS: Final = (
    "the name of a table: write namespace.table, in lower-case letters, digits and _. {namespace} may stand for the"
    " first namespace, {topic} and {hash} may be in the table's name"
)

_HASH: Final = 8
_NOT_IN_TABLE: Final = re.compile(r"[^a-z0-9_]")


def default_table(topic: str) -> str:
    """Lower case, with `_` for invalid characters."""
    return table_name("{namespace}.{topic}", topic)


def table_name(template: str, topic: str) -> str:
    """`{topic}` is the topic with valid characters, `{hash}` the start of its SHA-256."""
    return (
        template.replace("{namespace}", DEFAULT_NAMESPACE)
        .replace("{topic}", _NOT_IN_TABLE.sub("_", topic.lower()))
        .replace("{hash}", sha256(topic.encode()).hexdigest()[:_HASH])
    )


def is_distinct(template: str) -> bool:
    return "{topic}" in template or "{hash}" in template
