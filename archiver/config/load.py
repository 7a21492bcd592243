"""Makes one frozen `Config` of `archiver.toml` and the environment. Mistakes are ConfigErrors that name the key."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from archiver.config.model import (
    ArchiveSection,
    ConfigFile,
    FormatConfig,
    MetricsSection,
    ProtobufFormat,
    RegistrySection,
    SchemaRegistrySection,
    TopicConfig,
    TopicSection,
    TracesSection,
)
from archiver.config.sources import flatten_borrowed, overlay_environment, read_toml
from archiver.config.topics import default_table, is_pattern, refuse_shared_tables, section_for
from archiver.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Config:
    """The whole, validated configuration. Options of Kafka, the catalog and Spark keep their own names."""

    _file: ConfigFile
    _folder: Path

    @property
    def kafka(self) -> Mapping[str, str]:
        """Options of librdkafka, under librdkafka's names."""
        return self._file.kafka

    @property
    def catalog(self) -> Mapping[str, str]:
        """Catalog properties, under pyiceberg's names."""
        return self._file.catalog

    @property
    def registry(self) -> RegistrySection:
        """Where the Postgres registry is."""
        return self._file.registry

    @property
    def schema_registry(self) -> SchemaRegistrySection | None:
        """Where the schema registry is, if there is one. Relative paths are relative to the configuration file."""
        section = self._file.schema_registry
        if section is None:
            return None
        paths = {name: getattr(section, name) for name in ("ca_file", "cert_file", "key_file")}
        return section.model_copy(
            update={name: self._folder / path for name, path in paths.items() if path is not None}
        )

    @property
    def spark(self) -> Mapping[str, str]:
        """Spark's options, and `master` or `remote`."""
        return self._file.spark

    @property
    def metrics(self) -> MetricsSection | None:
        """Where metrics and health are served, if anywhere."""
        return self._file.metrics

    @property
    def traces(self) -> TracesSection | None:
        """Where spans are sent, if anywhere."""
        return self._file.traces

    @property
    def archive(self) -> ArchiveSection:
        """The job's own settings."""
        return self._file.archive

    def topic(self, name: str) -> TopicConfig:
        """Return the settings of one topic: its own section or the longest matching pattern, over `[defaults]`."""
        section = section_for(name, self._file.topics)
        if section is None:
            raise ConfigError(
                f"No section of the configuration speaks for this topic; add [topics.{name!r}]",
                topic=name,
                sections=sorted(self._file.topics),
            )
        settings = {**self._file.defaults, **self._file.topics[section]}
        if is_pattern(section) and "table" in self._file.topics[section]:
            raise ConfigError("A pattern can't name one table for many topics", key=f"topics.{section}.table")
        settings = {**settings, "name": name, "table": settings.get("table") or default_table(name)}
        parsed = _validate(TopicConfig, settings, f"topics.{section}")
        if self._file.schema_registry is None:
            _refuse_envelopes(parsed, f"topics.{section}")
        return parsed.model_copy(
            update={"key": _anchored(parsed.key, self._folder), "value": _anchored(parsed.value, self._folder)}
        )

    def table_of(self, topic: str) -> str | None:
        """Return the table of a topic. None if no section matches it."""
        return None if section_for(topic, self._file.topics) is None else self.topic(topic).table

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of tables: those that the topics in the file name, and that of default table names."""
        named = (self.topic(section).table for section in self._file.topics if not is_pattern(section))
        return tuple(sorted({table.rpartition(".")[0] for table in (default_table("any"), *named)}))

    def select(self, existing: Iterable[str], wanted: Iterable[str] = ()) -> tuple[TopicConfig, ...]:
        """Return the topics to archive: `wanted`, else those in the file and existing ones that a pattern matches.

        Raises ConfigError if two of them share a table, or if there are none.
        """
        names = list(dict.fromkeys(wanted))
        if not names:
            named = {section for section in self._file.topics if not is_pattern(section)}
            patterned = {topic for topic in existing if section_for(topic, self._file.topics)}
            names = sorted(named | patterned)
        if not names:
            raise ConfigError("There is no topic to archive; add a [topics.NAME] section or name one as an argument")
        topics = tuple(self.topic(name) for name in names)
        refuse_shared_tables({topic.name: topic.table for topic in topics})
        return topics


def load_config(path: str | Path, environment: Mapping[str, str] | None = None) -> Config:
    """Load the configuration in `path`. `ARCHIVER__…` variables of `environment` (default: our own) override it.

    Raises ConfigError, which names file and key, for everything that can't be right. Relative paths are relative to the
    file.
    """
    path = Path(path)
    tables = overlay_environment(read_toml(path), os.environ if environment is None else environment)
    file = _validate(ConfigFile, flatten_borrowed(tables), "", file=path)
    config = Config(file, path.parent.resolve())
    _validate(TopicSection, dict(file.defaults), "defaults", file=path)
    for section in file.topics:
        config.topic(section)
    refuse_shared_tables({name: config.topic(name).table for name in file.topics if not is_pattern(name)})
    return config


def _refuse_envelopes(topic: TopicConfig, section: str) -> None:
    """Refuse envelopes without a schema registry: nothing else knows the ids in them."""
    for part, format_ in (("key", topic.key), ("value", topic.value)):
        if isinstance(format_, ProtobufFormat) and format_.wire_format == "confluent":
            raise ConfigError(
                'wire_format = "confluent" needs the schema registry: set `url` in [schema_registry]',
                key=f"{section}.{part}.wire_format",
            )


def _anchored(format_: FormatConfig, folder: Path) -> FormatConfig:
    """Make relative paths of a format relative to the configuration file's folder."""
    if not isinstance(format_, ProtobufFormat):
        return format_
    paths: dict[str, Any] = {
        key: tuple(folder / value for value in getattr(format_, key)) for key in ("proto", "imports")
    }
    if format_.descriptors is not None:
        paths["descriptors"] = folder / format_.descriptors
    return format_.model_copy(update=paths)


def _validate(kind: type[Model], values: Mapping[str, Any], prefix: str, **where: Any) -> Model:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError(
            _explain(error, kind, prefix), **{name: str(value) for name, value in where.items()}
        ) from None


def _explain(error: ValidationError, kind: type[BaseModel], prefix: str) -> str:
    """Tell every mistake on a line of its own: the dotted key, and what is wrong with it."""
    lines = []
    for mistake in error.errors(include_url=False, include_input=False, include_context=False):
        key = ".".join(str(part) for part in (prefix, *mistake["loc"]) if part != "")
        text = mistake["msg"].removeprefix("Value error, ")
        if mistake["type"] == "extra_forbidden":
            text = f"there is no such key{_nearest(mistake['loc'], kind)}"
        elif mistake["type"] == "missing":
            text = "this key is required"
        lines.append(f"{key or 'configuration'}: {text}")
    return "; ".join(lines)


def _nearest(location: tuple[int | str, ...], kind: type[BaseModel]) -> str:
    """Suggest the known keys nearest to an unknown one."""
    for part in location[:-1]:
        field = kind.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            return ""
        kind = field.annotation
    near = get_close_matches(str(location[-1]), kind.model_fields, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known here: {', '.join(sorted(kind.model_fields))}"
