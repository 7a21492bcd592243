"""Renders a first `archiver.toml`. Topics stay raw unless a schema registry identifies their format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from archiver.config.table_names import default_table
from archiver.schemas import FORMATS
from archiver.schemas.registry.client import SchemaRegistry
from archiver.setup.cluster_topics import TopicSize
from archiver.setup.samples import Look, Sampled
from schema_mapping.errors import ContextError

WITHOUT_ANSWER: Final[Mapping[str, Mapping[str, str]]] = {
    "catalog": {"uri": "http://localhost:8181"},
    "registry": {"dsn": "postgresql://archiver@localhost:5432/archiver"},
}
"""What stands for servers that nobody named."""

_ABOUT: Final = {
    "kafka": "The cluster. Options have librdkafka's names.",
    "catalog": 'The Iceberg REST catalog. Options have pyiceberg\'s names; a secret may be { env = "NAME" }.',
    "registry": "A Postgres database of the archiver's own.",
    "spark": "Spark: `master` or `remote`, and options of its own.",
    "archive": "The job: the spool, and `journal`, which keeps beside the tables what Postgres knows.",
    "schema_registry": "The schema registry.",
    "metrics": "Prometheus metrics and health.",
    "traces": "OpenTelemetry spans.",
}
_ADVICE: Final = {
    "archive": '# journal = "s3://BUCKET/_archiver"\n',
    "spark": '# master = "local[*]"\n',
}
_REGISTERED: Final = "Protobuf, as Avro or as JSON"
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDraft:
    """`error`: why there are no samples."""

    size: TopicSize
    keys: Sampled | None = None
    values: Sampled | None = None
    error: ContextError | None = None
    formats: Mapping[str, str] = field(default_factory=dict)
    asked_registry: bool = False

    @property
    def is_in_force(self) -> bool:
        return self.error is None and self.size.error is None and not self.size.topic.startswith("_")


def registered_formats(registry: SchemaRegistry, topic: str, keys: Sampled, values: Sampled) -> dict[str, str]:
    """Only if all samples have schema ids of one kind. Raises subclasses of SchemaRegistryError."""
    registered = {}
    for part, sampled in (("key", keys), ("value", values)):
        if sampled.all_look is not Look.REGISTRY:
            continue
        for entry in FORMATS.registered:
            assert entry.kind is not None
            schemas = registry.schemas(entry.kind)
            if all(schemas.by_id(number) is not None for number in sampled.schema_ids):
                schemas.latest(f"{topic}-{part}")
                registered[part] = str(entry.registered_section)
                break
    return registered


def config_text(head: Iterable[str], sections: Mapping[str, Mapping[str, Any]], drafts: Sequence[TopicDraft]) -> str:
    lines = [f"# {line}".rstrip() for line in head]
    ordered = [*(name for name in _ABOUT if name in sections), *(name for name in sections if name not in _ABOUT)]
    for name in dict.fromkeys([*ordered, *_ADVICE]):
        values = sections.get(name, {})
        lines += ["", f"# {_ABOUT[name]}" if name in _ABOUT else "", f"[{name}]"]
        placeholder = WITHOUT_ANSWER.get(name, {})
        for key, value in values.items():
            guess = "  # CHANGE THIS: nothing said where it is" if placeholder.get(key) == value else ""
            lines.append(f"{_key(key)} = {_value(value)}{guess}")
        if name in _ADVICE and not values:
            lines.append(_ADVICE[name].rstrip("\n"))
    lines += [
        "",
        "# What holds for every topic unless its section says otherwise (docs/configuration.md).",
        "[defaults]",
    ]
    lines += ['# partition_by = "day"', '# on_parse_error = "pass_through"']
    taken: set[str] = set()
    for draft in drafts:
        lines += ["", *_topic_lines(draft, taken)]
    if not drafts:
        lines += ["", "# The cluster showed no topic. Name one, or a pattern:", '# [topics."orders.*"]']
    return "\n".join(lines) + "\n"


def _topic_lines(draft: TopicDraft, taken: set[str]) -> Iterator[str]:
    name = draft.size.topic
    section = [f"[topics.{_key(name)}]"]
    if draft.is_in_force:
        table = _table(name, taken)
        if table != default_table(name):
            section.append(f"table = {_value(table)}")
        section += [f"{part} = {text}" for part, text in draft.formats.items()]
    yield from (f"# {line}" for line in _remarks(draft))
    yield from section if draft.is_in_force else (f"# {line}" for line in section)
    for part, sampled in (("key", draft.keys), ("value", draft.values)):
        if draft.is_in_force and sampled is not None and part not in draft.formats:
            yield from _proposal(part, sampled, draft)


def _proposal(part: str, sampled: Sampled, draft: TopicDraft) -> Iterator[str]:
    """Only a registry knows the format of enveloped values."""
    look = sampled.all_look
    if sampled.has_bytes:
        yield f'# {part} = {{ format = "avro", schema = "FILE.avsc" }}  # if it is Avro'
    elif look is Look.SINGLE_OBJECT:
        yield f'# {part} = {{ format = "avro", wire_format = "single_object", schema = "FILE.avsc" }}'
    elif look is Look.PROTOBUF:
        yield f'# {part} = {{ format = "protobuf", message = "PACKAGE.MESSAGE", proto = "FILE.proto" }}'
    elif look is Look.JSON:
        option = " --key" if part == "key" else ""
        yield f'# {part} = {{ format = "json", schema = "FILE.schema.json" }}  # archiver schema infer{option} TOPIC'
    elif look is Look.REGISTRY and draft.asked_registry:
        yield f"# {part}: the registry doesn't have all of these ids as {_REGISTERED}: it is archived as bytes"
    elif look is Look.REGISTRY:
        yield f"# {part}: set [schema_registry], and `archiver init` looks if it has Protobuf, Avro or JSON schemas"


def _remarks(draft: TopicDraft) -> Iterator[str]:
    size = draft.size
    partitions = "partitions unknown" if size.partitions is None else _count(size.partitions, "partition")
    records = "" if size.offsets is None else f", at most {_count(size.offsets, 'record')}"
    if size.offsets == 0:
        records = ", no records"
    yield f"{size.topic}: {partitions}{records}"
    error = draft.error or size.error
    if error is not None:
        yield f"It couldn't be read: {type(error).__name__}: {' '.join(error.message.split())}"
    elif size.topic.startswith("_"):
        yield "Topics whose names begin with _ belong to other software. Take the # away to archive it."
    for part, sampled in (("keys", draft.keys), ("values", draft.values)):
        if sampled is not None and sampled.looks:
            yield from _seen(part, sampled)
    if draft.is_in_force and not draft.formats:
        yield "Keys and values are kept byte for byte, without columns of their own."


def _seen(part: str, sampled: Sampled) -> Iterator[str]:
    count = sum(sampled.looks.values())
    texts = [f"{number} {_verb(look, number)}" for look, number in sampled.looks.most_common()]
    yield f"Of {count} {part if count != 1 else part[:-1]}, {', '.join(texts)}."
    if sampled.schema_ids:
        yield f"  Schema ids: {', '.join(map(str, sampled.schema_ids[:20]))}"
    if sampled.fields:
        yield f"  Field numbers: {', '.join(map(str, sampled.fields[:20]))}"


def _verb(look: Look, number: int) -> str:
    if look in {Look.NULL, Look.EMPTY}:
        return f"{'is' if number == 1 else 'are'} {look}"
    if number != 1:
        return str(look)
    return {"look": "looks", "begin": "begins", "are": "is", "could": "could"}[str(look).split()[0]] + str(look)[
        len(str(look).split()[0]) :
    ]


def _table(topic: str, taken: set[str]) -> str:
    name, number = default_table(topic), 2
    while name in taken:
        name, number = f"{default_table(topic)}_{number}", number + 1
    taken.add(name)
    return name


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:
    match value:
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
        case bool() | int() | float() | str():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)  # a time, as TOML writes it
