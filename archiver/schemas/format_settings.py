"""The interface of a format's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

import pyarrow as pa

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

MOST_RAW: Final = 0.01
"""The share of sampled values that an inferred schema may leave raw, if another one leaves fewer."""

SectionT_contra = TypeVar("SectionT_contra", bound=FormatSection, contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaPlace:
    """The key or value of a topic."""

    topic: str
    part: Part
    subjects: Subjects | None = None

    @property
    def header(self) -> bytes:
        return HEADERS[self.part]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedFile:
    """`topic` and `today` are None without a table.

    `message` names the type if the file has several; `imports` are folders.
    """

    path: Path
    message: str | None = None
    imports: tuple[Path, ...] = ()
    topic: str | None = None
    today: DeclaredSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredSchema:
    """`raw` counts sampled values that it leaves raw, for these `reasons`."""

    text: str
    values: int
    raw: int
    reasons: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class SchemaInference(Protocol):
    """Proposes a schema, as an extension of `base`."""

    def __call__(
        self, samples: Iterable[pa.BinaryArray], *, title: str, base: DeclaredSchema | None = None
    ) -> InferredSchema:
        """Raises ConfigError."""


class FormatSettings(Protocol[SectionT_contra]):
    """A format of keys and values."""

    @property
    def name(self) -> str: ...

    @property
    def suffixes(self) -> tuple[str, ...]: ...

    @property
    def kind(self) -> SchemaKind[Any] | None:
        """None if schema registries don't keep its schemas."""

    @property
    def registered_section(self) -> str | None:
        """As TOML. None if schema registries can't have its schemas."""

    @property
    def inference(self) -> SchemaInference | None:
        """None if values can't be typed without their schema."""

    def source_schema(self, settings: SectionT_contra, place: SchemaPlace) -> DeclaredSchema | None:
        """Raises ConfigError if a file can't be read, and subclasses of SchemaRegistryError."""

    def envelope_reader(
        self, settings: SectionT_contra, schema: DeclaredSchema | None, place: SchemaPlace
    ) -> EnvelopeReader | None:
        """None for values without envelopes."""

    def next_schema(self, file: ProposedFile, settings: SectionT_contra | None) -> DeclaredSchema:
        """Return the topic's schema with this file. `settings` are None for another format.

        Raises ConfigError if the file can't be read, or today's schema is of another format.
        """


def mapping_options(topic: TopicSection) -> MappingOptions:
    """If key and value have different limits, the wider ones apply."""
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
