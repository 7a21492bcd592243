"""Loads one frozen `Config`. ConfigErrors name the key."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from archiver.config.flight_section import FlightSection, needs_kafka
from archiver.config.index_section import IndexSection
from archiver.config.mistakes import explain, key_text
from archiver.config.model import (
    ArchiveSection,
    AuditSection,
    ConfigFile,
    MetricsSection,
    RegistrySection,
    SchemaRegistrySection,
    ServeSection,
    TopicConfig,
    TopicSection,
    TracesSection,
)
from archiver.config.sources import (
    flatten_borrowed,
    overlay_environment,
    read_toml,
    with_anchored_certificates,
)
from archiver.config.table_names import default_table, is_distinct, table_name
from archiver.config.topics import internal_hint, is_pattern, near_topic, refuse_shared_tables, section_for
from archiver.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Config:
    """Options of Kafka, the catalog and Spark keep their names."""

    _file: ConfigFile
    _folder: Path

    @property
    def kafka(self) -> Mapping[str, str]:
        return self._file.kafka

    @property
    def catalog(self) -> Mapping[str, str]:
        return self._file.catalog

    @property
    def registry(self) -> RegistrySection:
        return self._file.registry

    @property
    def schema_registry(self) -> SchemaRegistrySection | None:
        section = self._file.schema_registry
        if section is None:
            return None
        return _anchored_paths(section, self._folder, "ca_file", "cert_file", "key_file")

    @property
    def spark(self) -> Mapping[str, str]:
        return self._file.spark

    @property
    def metrics(self) -> MetricsSection | None:
        return self._file.metrics

    @property
    def serve(self) -> ServeSection:
        section = self._file.serve
        anchored = {
            "tls": _anchored_paths(section.tls, self._folder, "certificate", "key", "client_ca"),
            "oauth": _anchored_paths(section.oauth, self._folder, "jwks_file", "ca_file"),
        }
        return section.model_copy(update={name: path for name, path in anchored.items() if path is not None})

    @property
    def flight(self) -> FlightSection:
        return _anchored_paths(self._file.flight, self._folder, "wal") or self._file.flight

    @property
    def index(self) -> IndexSection:
        return self._file.index

    @property
    def traces(self) -> TracesSection | None:
        return self._file.traces

    @property
    def archive(self) -> ArchiveSection:
        return self._file.archive

    @property
    def audit(self) -> AuditSection:
        section = self._file.audit
        if section.signing_key is None:
            return section
        return section.model_copy(update={"signing_key": self._folder / section.signing_key})

    def topic(self, name: str) -> TopicConfig:
        """Patterns: the longest wins. `[defaults]` apply. Raises ConfigError."""
        section = section_for(name, self._file.topics)
        if section is None:
            raise ConfigError(
                f"No section of the configuration speaks for this topic{near_topic(name, self._file.topics)}; add"
                f" [topics.{name!r}] if it is another one",
                topic=name,
                sections=sorted(self._file.topics),
            )
        key = ("topics", section)
        settings = {**self._file.defaults, **self._file.topics[section]}
        checked = _validate(TopicSection, settings, key)
        if is_pattern(section) and checked.table is not None and not is_distinct(checked.table):
            raise ConfigError(
                "A pattern can't name one table for many topics: write {topic} or {hash} into its name, such as"
                ' "kafka.{topic}"',
                key=key_text((*(key if "table" in self._file.topics[section] else ("defaults",)), "table")),
                table=checked.table,
            )
        if is_pattern(section) and checked.source == "flight":
            raise ConfigError(
                'A pattern can\'t have source = "flight": write a section for each topic',
                key=key_text((*key, "source")),
            )
        table = default_table(name) if checked.table is None else table_name(checked.table, name)
        settings = {**settings, "name": name, "table": table}
        parsed = _validate(TopicConfig, settings, key)
        if self._file.schema_registry is None:
            _refuse_envelopes(parsed, key_text(key))
        if parsed.index and self._file.index.location is None:
            raise ConfigError(
                "an index needs a place outside of all tables: set `location` in [index]",
                key=key_text((*(key if "index" in self._file.topics[section] else ("defaults",)), "index")),
            )
        return parsed.model_copy(
            update={"key": parsed.key.anchored(self._folder), "value": parsed.value.anchored(self._folder)}
        )

    def kafka_topic(self, name: str) -> TopicConfig:
        """Raises ConfigError if the topic isn't Kafka's."""
        topic = self.topic(name)
        if topic.source != "kafka":
            raise ConfigError(
                "the topic's rows come from Flight clients: `archiver serve flight` writes them to its table",
                topic=name,
                key=key_text(("topics", name, "source")),
            )
        return topic

    @property
    def has_kafka(self) -> bool:
        """Without brokers all topics have `source = "flight"`."""
        return bool(self._file.kafka)

    @property
    def kafka_sections(self) -> tuple[str, ...]:
        """Includes patterns."""
        return tuple(name for name in self.sections if is_pattern(name) or self.topic(name).source == "kafka")

    @property
    def flight_topics(self) -> tuple[TopicConfig, ...]:
        named = (self.topic(section) for section in self.sections if not is_pattern(section))
        return tuple(topic for topic in named if topic.source == "flight")

    def table_of(self, topic: str) -> str | None:
        return None if section_for(topic, self._file.topics) is None else self.topic(topic).table

    @property
    def namespaces(self) -> tuple[str, ...]:
        named = (self.topic(section).table for section in self._file.topics)
        return tuple(sorted({table.rpartition(".")[0] for table in (default_table("any"), *named)}))

    @property
    def sections(self) -> tuple[str, ...]:
        return tuple(sorted(self._file.topics))

    def select_kafka(
        self, existing: Iterable[str], wanted: Iterable[str] = (), *, may_be_none: bool = False
    ) -> tuple[TopicConfig, ...]:
        """As `select`, for Kafka. Raises ConfigError for a wanted topic of another source."""
        names = tuple(self.kafka_topic(name).name for name in wanted)
        if not names and self.sections and not self.kafka_sections:
            if may_be_none:
                return ()
            raise ConfigError(
                'There is no topic of Kafka to archive: all sections have source = "flight", and `archiver serve'
                " flight` writes their rows to the tables"
            )
        topics = self.select(existing, names, may_be_none=may_be_none)
        return tuple(topic for topic in topics if topic.source == "kafka")

    def select(
        self, existing: Iterable[str], wanted: Iterable[str] = (), *, may_be_none: bool = False
    ) -> tuple[TopicConfig, ...]:
        """Return `wanted`, else the file's topics and existing ones that match patterns.

        Raises ConfigError if there are none, unless `may_be_none` and there are patterns.
        """
        names = list(dict.fromkeys(wanted))
        if not names:
            named = {section for section in self._file.topics if not is_pattern(section)}
            patterned = {topic for topic in existing if section_for(topic, self._file.topics)}
            names = sorted(named | patterned)
        if not names and self._file.topics:
            if may_be_none:
                return ()
            raise ConfigError(
                "No topic of the cluster matches a pattern of the configuration (with `archive --every` the archiver"
                f" waits for one){''.join(map(internal_hint, self.sections))}",
                patterns=list(self.sections),
            )
        if not names:
            raise ConfigError("There is no topic to archive; add a [topics.NAME] section or name one as an argument")
        return tuple(self.topic(name) for name in names)


def load_config(path: str | Path, environment: Mapping[str, str] | None = None) -> Config:
    """Load a file, overridden by `ARCHIVER__…` variables. Paths are relative to it.

    Raises ConfigError, which names file and key.
    """
    path = Path(path)
    tables = overlay_environment(read_toml(path), os.environ if environment is None else environment)
    try:
        return _checked(tables, path.parent.resolve())
    except ConfigError as error:
        raise ConfigError(error.message, **{"file": str(path), **error.context}) from None


def _checked(tables: Mapping[str, Any], folder: Path) -> Config:
    file = _validate(ConfigFile, _with_kafka(with_anchored_certificates(flatten_borrowed(tables), folder)))
    config = Config(file, folder)
    _validate(TopicSection, file.defaults, ("defaults",))
    for section in file.topics:
        if not section:
            raise ConfigError("A topic's name can't be empty: name it in [topics.\"NAME\"]")
        config.topic(section)
    refuse_shared_tables({name: config.topic(name).table for name in file.topics if not is_pattern(name)})
    return config


def _with_kafka(tables: Mapping[str, Any]) -> Mapping[str, Any]:
    defaults, topics = tables.get("defaults", {}), tables.get("topics", {})
    if "kafka" in tables or not isinstance(defaults, Mapping) or not isinstance(topics, Mapping):
        return tables
    if not all(isinstance(topic, Mapping) for topic in topics.values()) or needs_kafka(defaults, topics):
        return tables
    return {**tables, "kafka": {}}


def _refuse_envelopes(topic: TopicConfig, section: str) -> None:
    for part, format_ in (("key", topic.key), ("value", topic.value)):
        if (setting := format_.registry_setting) is not None:
            raise ConfigError(
                f"{setting} needs the schema registry: set `url` in [schema_registry]",
                key=f"{section}.{part}.{setting.partition(' ')[0]}",
            )


def _anchored_paths(section: Model | None, folder: Path, *names: str) -> Model | None:
    if section is None:
        return None
    paths = {name: getattr(section, name) for name in names}
    return section.model_copy(update={name: folder / path for name, path in paths.items() if path is not None})


def _validate(kind: type[Model], values: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> Model:
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(explain(error, kind, values, prefix)) from None
