"""The protocol of a format's settings: its schemas, how to read its envelopes, and what a registry calls its schemas.

`formats` lists the formats. What the configuration itself says of a format is in `archiver.config.formats`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

from archiver.config.formats import FormatSection
from archiver.config.model import TopicSection
from archiver.schemas.registry.envelope import EnvelopeReader
from archiver.schemas.registry.schema_kind import SchemaKind
from archiver.schemas.registry.subjects import Subjects
from archiver.wire.header_ids import KEY_HEADER, VALUE_HEADER
from schema_mapping.columns.options import NEW_TABLES, MappingOptions
from schema_mapping.value_format import DeclaredSchema

Part: TypeAlias = Literal["key", "value"]
HEADERS: Final[Mapping[Part, bytes]] = {"key": KEY_HEADER, "value": VALUE_HEADER}

SectionT_contra = TypeVar("SectionT_contra", bound=FormatSection, contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaPlace:
    """What a schema is for: the key or the value of a topic. `subjects` asks the schema registry, if there is one."""

    topic: str
    part: Part
    subjects: Subjects | None = None

    @property
    def header(self) -> bytes:
        """The name of the header that may have the schema's id."""
        return HEADERS[self.part]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedFile:
    """A schema file that is compared with a table's columns.

    `message` names the type if the file has several, and `imports` are the folders of further files. `topic` and
    `today`, its newest schema, are None if there is no table.
    """

    path: Path
    message: str | None = None
    imports: tuple[Path, ...] = ()
    topic: str | None = None
    today: DeclaredSchema | None = None


class FormatSettings(Protocol[SectionT_contra]):
    """What the settings of a format mean. There is one object a format; `settings` is the format's section."""

    @property
    def name(self) -> str:
        """The `format` of its sections."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The endings of its schema files, such as `.proto`."""

    @property
    def kind(self) -> SchemaKind[Any] | None:
        """How schema registries keep its schemas. None if they don't."""

    @property
    def registered_section(self) -> str | None:
        """The section, as TOML, of a topic whose schemas are in the schema registry. None if they can't be there."""

    def source_schema(self, settings: SectionT_contra, place: SchemaPlace) -> DeclaredSchema | None:
        """The schema that the settings of a key or value name. None if the format has none.

        Raises ConfigError if a file can't be read, and the subclasses of SchemaRegistryError if the schema registry
        doesn't give the schema.
        """

    def envelope_reader(
        self, settings: SectionT_contra, schema: DeclaredSchema | None, place: SchemaPlace
    ) -> EnvelopeReader | None:
        """The reader of the envelopes of a key or value with this schema. None if it has no envelopes."""

    def next_schema(self, file: ProposedFile, settings: SectionT_contra | None) -> DeclaredSchema:
        """The schema that a topic would have next with this file. `settings` are None if they have another format.

        Raises ConfigError if the file can't be read, or if today's schema is of another format.
        """


def mapping_options(topic: TopicSection) -> MappingOptions:
    """The options of a topic's columns. If key and value have different limits, the wider ones count."""
    limits = [limit for limit in (topic.key.column_limits, topic.value.column_limits) if limit is not None]
    if not limits:
        return MappingOptions()
    return MappingOptions(
        max_depth=max(limit.depth for limit in limits),
        max_columns=max(limit.columns for limit in limits),
        keep_removed=topic.keep_removed,
        expand_cuts=topic.expand_cuts,
        well_known_types=topic.well_known_types or NEW_TABLES.well_known_types,
        keeps_types=topic.well_known_types is None,
        uint64=topic.uint64,
    )
