"""The formats of keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from archiver.config.section import Section

MAX_DEPTH = 28
MAX_COLUMNS = 10_000


def _paths(value: object) -> object:
    return value if isinstance(value, (list, tuple)) else (value,)


def _descriptor_files(value: object) -> object:
    if isinstance(value, Mapping):
        return tuple(sorted(((_number(name), _file(path)) for name, path in value.items()), key=str))
    return value if isinstance(value, tuple) else _file(value)


def _file(value: object) -> Path:
    if not isinstance(value, str | Path):
        raise ValueError(f"{value!r} is not a path in quotes")  # noqa: TRY004 - pydantic reports a ValueError
    return Path(value)


def _number(name: str) -> int | UUID:
    if name.isdecimal():
        return int(name)
    try:
        return UUID(name)
    except ValueError:
        raise ValueError(f"{name!r} is neither a schema's id nor a GUID") from None


DescriptorFiles = Annotated[Path | tuple[tuple[int | UUID, Path], ...], PlainValidator(_descriptor_files)]
"""A descriptor-set file, or such files by the ids and GUIDs whose schemas they replace."""
Paths = Annotated[tuple[Path, ...], BeforeValidator(_paths)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLimits:
    depth: int
    columns: int


class FormatSection(Section):
    format: str

    @property
    def has_schema(self) -> bool:
        return True

    @property
    def registry_setting(self) -> str | None:
        """The setting that enables a schema registry's envelopes."""
        return None

    @property
    def has_envelopes(self) -> bool:
        """The envelope may also be in a header."""
        return self.registry_setting is not None

    @property
    def is_wrapped(self) -> bool:
        """Whether values are more than a schema's encoding: it begins after an id or a fingerprint."""
        return self.has_envelopes

    @property
    def gets_envelopes(self) -> bool:
        return False

    @property
    def column_limits(self) -> ColumnLimits | None:
        """None without a schema."""
        return None

    @property
    def files_beside_registry(self) -> tuple[Path, ...]:
        """Schemas that the schema registry lacks."""
        return ()

    def anchored(self, folder: Path) -> Self:  # noqa: ARG002 - a format without files has no paths
        return self


class RawFormat(FormatSection):
    """Keys or values in one binary column. `column` of the values has the keys of rows that clients send."""

    format: Literal["raw"] = "raw"
    column: str | None = Field(default=None, min_length=1)

    @property
    def has_schema(self) -> bool:
        return False


class ProtobufFormat(FormatSection):
    """Protobuf of one type `message`; with a registry, of any of `messages`."""

    format: Literal["protobuf"]
    message: str | None = Field(default=None, min_length=1)
    messages: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    coerce: bool = False
    descriptors: DescriptorFiles | None = None
    proto: Paths = ()
    imports: tuple[Path, ...] = ()
    extensions: tuple[str, ...] = ()
    wire_format: Literal["plain", "confluent"] = "plain"
    subject: str | None = Field(default=None, min_length=1)
    subject_strategy: Literal["topic_name", "record_name", "topic_record_name"] = "topic_name"
    max_depth: int = Field(default=24, ge=1, le=MAX_DEPTH)
    max_columns: int = Field(default=2_000, ge=1, le=MAX_COLUMNS)

    @property
    def registry_setting(self) -> str | None:
        return None if self.wire_format == "plain" else f'wire_format = "{self.wire_format}"'

    @property
    def gets_envelopes(self) -> bool:
        return self.coerce

    @property
    def column_limits(self) -> ColumnLimits:
        return ColumnLimits(depth=self.max_depth, columns=self.max_columns)

    @property
    def files_beside_registry(self) -> tuple[Path, ...]:
        if not self.has_envelopes:
            return ()
        replacing = self.descriptors if isinstance(self.descriptors, tuple) else ()
        return (*self.imports, *(path for _, path in replacing))

    def anchored(self, folder: Path) -> Self:
        paths: dict[str, Any] = {
            key: tuple(folder / path for path in getattr(self, key)) for key in ("proto", "imports")
        }
        if isinstance(self.descriptors, Path):
            paths["descriptors"] = folder / self.descriptors
        elif self.descriptors is not None:
            paths["descriptors"] = tuple((number, folder / path) for number, path in self.descriptors)
        return self.model_copy(update=paths)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.wire_format == "confluent":
            return self._from_registry()
        if self.messages:
            raise ValueError(
                '`messages` goes with wire_format = "confluent": without the envelope of a schema registry nothing in'
                " a record says which of them it is. Give one `message`"
            )
        if self.coerce:
            raise ValueError('`coerce` goes with wire_format = "confluent": without a registry there is no envelope')
        if self.message is None:
            raise ValueError("give `message`, the full name of the message type")
        if self.subject is not None or self.subject_strategy != "topic_name":
            raise ValueError('`subject` and `subject_strategy` go with wire_format = "confluent"')
        if isinstance(self.descriptors, tuple):
            raise ValueError('`descriptors` with schema ids goes with wire_format = "confluent": give one file')  # noqa: TRY004
        if (self.descriptors is None) == (not self.proto):
            raise ValueError(
                "give either `descriptors` (a file written by protoc --include_imports --descriptor_set_out) "
                "or `proto` (a .proto file, or several), and not both"
            )
        if self.imports and not self.proto:
            raise ValueError("`imports` goes with `proto`: a descriptor set holds its imports already")
        return self

    def _from_registry(self) -> Self:
        if self.proto:
            raise ValueError('with wire_format = "confluent" the schema comes from the registry: give no `proto`')
        if isinstance(self.descriptors, Path):
            raise ValueError(  # noqa: TRY004
                'with wire_format = "confluent" give the ids that `descriptors` replaces: { 7 = "seven.binpb" }'
            )
        if self.messages:
            self._check_messages()
        elif self.message is None and self.subject is None and self.subject_strategy != "topic_name":
            raise ValueError("a subject named after the record needs `message`, the record's full name")
        return self

    def _check_messages(self) -> None:
        if self.message is not None:
            raise ValueError("give either `message` or `messages`")
        if len(set(self.messages)) < len(self.messages):
            raise ValueError("`messages` names a message twice")
        if self.coerce:
            raise ValueError("`coerce` needs one `message`: without an envelope nothing says which of `messages` it is")


class FilesOrSubject(FormatSection):
    """From files, of which the first may refer to the rest, or a registry's subject."""

    model_config = ConfigDict(populate_by_name=True)

    schema_files: Paths = Field(default=(), alias="schema")
    subject: str | None = Field(default=None, min_length=1)
    max_depth: int = Field(default=24, ge=1, le=MAX_DEPTH)
    max_columns: int = Field(default=2_000, ge=1, le=MAX_COLUMNS)

    @property
    def column_limits(self) -> ColumnLimits:
        return ColumnLimits(depth=self.max_depth, columns=self.max_columns)

    def anchored(self, folder: Path) -> Self:
        return self.model_copy(update={"schema_files": tuple(folder / path for path in self.schema_files)})


class AvroFormat(FilesOrSubject):
    format: Literal["avro"]
    wire_format: Literal["plain", "confluent", "single_object"] = "plain"
    older_schemas: Paths = ()
    subject_strategy: Literal["topic_name", "record_name", "topic_record_name"] = "topic_name"
    message: str | None = Field(default=None, min_length=1)

    @property
    def registry_setting(self) -> str | None:
        if self.wire_format == "plain" or self.schema_files:
            return None
        missing = " without `schema`" if self.wire_format == "single_object" else ""
        return f'wire_format = "{self.wire_format}"{missing}'

    @property
    def is_wrapped(self) -> bool:
        return self.wire_format != "plain"

    def anchored(self, folder: Path) -> Self:
        older = tuple(folder / path for path in self.older_schemas)
        return super().anchored(folder).model_copy(update={"older_schemas": older})

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.older_schemas and (self.wire_format != "single_object" or not self.schema_files):
            raise ValueError(
                '`older_schemas` goes with wire_format = "single_object" and `schema`: only the fingerprint of a value'
                " says which of them it was written with"
            )
        if self.wire_format == "plain" and not self.schema_files:
            raise ValueError(
                'give `schema` (an .avsc file; files that it refers to after it), or wire_format = "confluent" for'
                " schemas from a schema registry"
            )
        if self.wire_format == "confluent" and self.schema_files:
            raise ValueError('with wire_format = "confluent" the schemas come from the registry: give no `schema`')
        return self._from_files() if self.schema_files else self._from_subject()

    def _from_files(self) -> Self:
        if self.subject is not None or self.subject_strategy != "topic_name" or self.message is not None:
            raise ValueError(
                '`subject`, `subject_strategy` and `message` go with wire_format = "confluent", or without `schema`'
            )
        return self

    def _from_subject(self) -> Self:
        if self.subject is None and self.subject_strategy != "topic_name" and self.message is None:
            raise ValueError("a subject named after the record needs `message`, the record's full name")
        if self.message is not None and (self.subject is not None or self.subject_strategy == "topic_name"):
            raise ValueError("`message` names the record of a `subject_strategy`: give it with one, without `subject`")
        return self


class JsonFormat(FilesOrSubject):
    format: Literal["json"]
    wire_format: Literal["plain", "confluent"] = "plain"

    @property
    def registry_setting(self) -> str | None:
        return None if self.wire_format == "plain" else f'wire_format = "{self.wire_format}"'

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.wire_format == "plain":
            if not self.schema_files:
                raise ValueError(
                    'give `schema` (a JSON Schema; files that it refers to after it), or wire_format = "confluent" for'
                    " schemas from a schema registry"
                )
            if self.subject is not None:
                raise ValueError('`subject` goes with wire_format = "confluent"')
        elif self.schema_files:
            raise ValueError('with wire_format = "confluent" the schema comes from the registry: give no `schema`')
        return self


FormatConfig = Annotated[RawFormat | ProtobufFormat | AvroFormat | JsonFormat, Field(discriminator="format")]
"""How keys or values are read: one of the formats, chosen by `format`."""
