"""pyiceberg's Avro files of manifests and lists, with compiled schemas cached."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, Self

from pyiceberg.avro.codecs import AVRO_CODEC_KEY, CODEC_MAPPING_ICEBERG_TO_AVRO
from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import MAGIC, META_SCHEMA, SYNC_SIZE, AvroFile, AvroFileHeader, AvroOutputFile
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import construct_reader, construct_writer, resolve_reader
from pyiceberg.avro.writer import Writer
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_LIST_FILE_SCHEMAS,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestWriterV2,
    PartitionFieldSummary,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.types import StructType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

_SCHEMA: Final = "avro.schema"
_KEPT: Final = 128
"""How many schemas are kept: those of lists are as many as libraries that write them, of manifests as partitionings."""

if TYPE_CHECKING:
    _ListFile = AvroFile[ManifestFile]
    _EntryFile = AvroOutputFile[ManifestEntry]
else:
    _ListFile, _EntryFile = AvroFile, AvroOutputFile


class ManifestListFile(_ListFile):
    def __enter__(self) -> Self:
        with self.input_file.open() as stream:
            self.decoder = new_decoder(stream.read())
        self.header = _header_reader().read(self.decoder)
        self.reader = _list_reader(self.header.meta[_SCHEMA])
        return self

    @classmethod
    def read(cls, file: InputFile) -> list[ManifestFile]:
        with cls(file) as manifests:
            return list(manifests)


class ManifestFileWriter(ManifestWriterV2):
    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        return _ManifestFile(self._output_file, _entry_form(self._spec.partition_type(self._schema)), self._meta)


class _ManifestFile(_EntryFile):
    def __init__(self, file: OutputFile, form: _Form, metadata: dict[str, str]) -> None:
        self.output_file = file
        self.sync_bytes = os.urandom(SYNC_SIZE)
        self.writer = form.writer
        self.metadata = metadata
        self._schema = form.schema

    def _write_header(self) -> None:
        codec = self.metadata[AVRO_CODEC_KEY]
        named = {_SCHEMA: self._schema, AVRO_CODEC_KEY: CODEC_MAPPING_ICEBERG_TO_AVRO.get(codec, codec)}
        _header_writer().write(self.encoder, AvroFileHeader(MAGIC, self.metadata | named, self.sync_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    writer: Writer
    schema: str


@cache
def _header_reader() -> Reader:
    return construct_reader(META_SCHEMA, {-1: AvroFileHeader})


@cache
def _header_writer() -> Writer:
    return construct_writer(META_SCHEMA)


@lru_cache(maxsize=_KEPT)
def _list_reader(schema: str) -> Reader:
    return resolve_reader(
        AvroSchemaConversion().avro_to_iceberg(json.loads(schema)),
        MANIFEST_LIST_FILE_SCHEMAS[DEFAULT_READ_VERSION],
        {-1: ManifestFile, 508: PartitionFieldSummary},
        {517: ManifestContent},
    )


@lru_cache(maxsize=_KEPT)
def _entry_form(partition: StructType) -> _Form:
    file = data_file_with_partition(format_version=DEFAULT_READ_VERSION, partition_type=partition)
    entries = manifest_entry_schema_with_data_file(format_version=DEFAULT_READ_VERSION, data_file=file)
    text = json.dumps(AvroSchemaConversion().iceberg_to_avro(entries, schema_name="manifest_entry"))
    return _Form(writer=construct_writer(entries), schema=text)
