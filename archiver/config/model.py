"""The sections of the configuration (keys: docs/configuration.md)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from archiver.codecs import CODEC_WORDS
from archiver.config.flight_section import LISTEN, MOST_PARTITIONS, FlightSection, check_flight_topic, needs_kafka
from archiver.config.formats import FormatConfig, RawFormat
from archiver.config.index_section import IndexedValues, IndexSection
from archiver.config.quantities import Bytes, Seconds, bytes_text, seconds_text
from archiver.config.section import Section
from archiver.config.serve_security import AclSection, OauthSection, QuotaSection, SaslSection, TlsSection
from archiver.config.table_names import TABLE_NAME, TABLE_WORDS, TEMPLATE, TEMPLATE_WORDS
from catalog.iceberg.auth_settings import check_auth, check_certificates
from catalog.iceberg.store_settings import check_store_location, check_store_settings
from catalog.partitioning import PartitionTerm, terms_of

MIN_FILE_SIZE = 1 << 20
MAX_BLOOM_FILTERS = 16
if TYPE_CHECKING:
    ServedCompression: TypeAlias = str
else:
    ServedCompression = Literal["original", *CODEC_WORDS]
SHORT_RETENTION = 86400.0
"""A shorter retention is probably a mistake."""
_JOURNAL = "journal."


def _start_from(value: object) -> object:
    """Pydantic would take a number for seconds, and a day for its midnight."""
    if value in ("earliest", "latest"):
        return value
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        time = None
    if not isinstance(time, datetime):
        shown = value.isoformat() if isinstance(value, date) else repr(value)
        message = f"{shown} is not a start: write 'earliest', 'latest' or a time such as 2026-01-31T00:00:00Z"
        raise ValueError(message)  # noqa: TRY004 - pydantic passes on only ValueErrors
    if time.tzinfo is None:
        raise ValueError(f"{time.isoformat()} has no time zone: end it with Z or an offset such as +02:00")
    return time


StartFrom = Annotated[Literal["earliest", "latest"] | datetime, BeforeValidator(_start_from)]


def _partitions(value: object) -> object:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{value!r} is no partition: write a text or a list of texts")
    terms = tuple(map(str, terms_of(texts)))
    return terms[0] if isinstance(value, str) else terms


PartitionTexts = Annotated[str | tuple[str, ...], BeforeValidator(_partitions)]
"""The terms of `partition_by`. A single one may be written as a text."""


class TopicSection(Section):
    """Defaults are merged in."""

    source: Literal["kafka", "flight"] = "kafka"
    partitions: int | None = Field(default=None, ge=1, le=MOST_PARTITIONS)
    table: str | None = Field(default=None, pattern=TEMPLATE, description=TEMPLATE_WORDS)
    partition_by: PartitionTexts = "day"
    partition_source: Literal["nested", "flat"] | None = None
    bloom_filters: Annotated[tuple[str, ...], Field(max_length=MAX_BLOOM_FILTERS)] | None = None
    encodings: Literal["by_values", "plain"] = "by_values"
    bloom_filter_fpp: float = Field(default=0.01, ge=0.0001, le=0.5)
    index: IndexedValues = ()
    key: FormatConfig = RawFormat()
    value: FormatConfig = RawFormat()
    on_parse_error: Literal["pass_through", "halt"] = "pass_through"
    on_unrecognized: Literal["warn", "halt", "ignore"] = "warn"
    on_schema_change: Literal["apply", "compatible", "halt"] = "compatible"
    target_file_size: Bytes = Field(default=256 << 20, ge=MIN_FILE_SIZE, le=4 << 30)
    min_file_size: Bytes = Field(default=64 << 20, ge=0, le=4 << 30)
    compact: Literal["auto", "off"] = "off"
    compact_min_files: int = Field(default=5, ge=2, le=1_000)
    max_lag: Seconds = Field(default=300.0, ge=0.0, le=7 * 86400.0)
    snapshot_retention: Seconds = Field(default=86400.0, ge=0.0)
    retention: Seconds | None = Field(default=None, gt=0.0)
    retention_size: Bytes | None = Field(default=None, ge=1)
    expire: Literal["auto", "off"] = "off"
    hold: bool = False
    start_from: StartFrom = "earliest"
    keep_removed: bool = True
    expand_cuts: bool = False
    well_known_types: Literal["timestamp", "struct", "native"] | None = None
    uint64: Literal["long", "decimal"] = "long"

    @model_validator(mode="before")
    @classmethod
    def _read_key_column(cls, values: Any) -> Any:
        if (
            not isinstance(values, Mapping)
            or values.get("source") != "flight"
            or not isinstance(values.get("key"), str)
        ):
            return values
        return {**values, "key": {"format": "raw", "column": values["key"]}}

    @property
    def key_column(self) -> str | None:
        """The column of the values that has the keys of rows that clients send."""
        return self.key.column if isinstance(self.key, RawFormat) else None

    @property
    def retention_limits(self) -> str | None:
        limits = (
            None if self.retention is None else f'retention = "{seconds_text(self.retention)}"',
            None if self.retention_size is None else f'retention_size = "{bytes_text(self.retention_size)}"',
        )
        return ", ".join(limit for limit in limits if limit) or None

    @property
    def has_short_retention(self) -> bool:
        """Such a retention needs consent."""
        return self.retention is not None and self.retention < SHORT_RETENTION

    @property
    def partition_terms(self) -> tuple[PartitionTerm, ...]:
        return terms_of((self.partition_by,) if isinstance(self.partition_by, str) else self.partition_by)


class TopicConfig(TopicSection):
    """One topic's settings."""

    name: str
    table: str = Field(pattern=TABLE_NAME, description=TABLE_WORDS)

    @model_validator(mode="after")
    def _fits_source(self) -> Self:
        check_flight_topic(self)
        return self


class RegistrySection(Section):
    dsn: str = Field(repr=False)


class SchemaRegistrySection(Section):
    url: str = Field(min_length=1, repr=False)
    username: str | None = None
    password: str | None = Field(default=None, repr=False)
    token: str | None = Field(default=None, repr=False)
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    timeout: Seconds = Field(default=10.0, ge=0.1, le=300.0)
    latest_ttl: Seconds = Field(default=0.0, ge=0.0, le=3600.0)

    @model_validator(mode="after")
    def _one_identity(self) -> Self:
        if self.token is not None and (self.username is not None or self.password is not None):
            raise ValueError("give either `token` or `username` and `password`")
        if (self.username is None) != (self.password is None):
            raise ValueError("`username` and `password` go together")
        if self.key_file is not None and self.cert_file is None:
            raise ValueError("`key_file` goes with `cert_file`")
        for url in self.url.split(","):
            if not url.strip().startswith(("http://", "https://")):
                raise ValueError("`url` is no address: write http://HOST:PORT or https://HOST:PORT/PATH")
            if "@" in urlsplit(url.strip()).netloc and (self.token is not None or self.username is not None):
                raise ValueError("`url` names a user already: leave out `username`, `password` and `token`")
        return self


class ArchiveSection(Section):
    spool: Path = Field(default_factory=lambda: Path(tempfile.gettempdir()) / f"archiver-spool-{os.getuid()}")
    spool_size: Bytes = Field(default=8 << 30, ge=64 << 20)
    max_commit_interval: Seconds = Field(default=300.0, ge=1.0, le=3600.0)
    task_size: Bytes = Field(default=512 << 20, ge=1)
    tasks_per_partition: int = Field(default=16, ge=1, le=1024)
    partition_memory: Bytes = Field(default=128 << 20, ge=8 << 20, le=16 << 30)
    catalog_connections: int = Field(default=4, ge=1, le=64)
    orphan_grace: Seconds = Field(default=3 * 86400.0, ge=0.0)
    journal: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9+.-]*://[^/].*[^/]$|^file:///.*[^/]$",
        description="the place of a journal: write s3://BUCKET/PREFIX, without / at its end",
    )
    journal_properties: Mapping[str, str] = Field(default_factory=dict, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _gather_journal_properties(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        own = {key: str(value) for key, value in values.items() if key.startswith(_JOURNAL)}
        rest = {key: value for key, value in values.items() if key not in own}
        return rest | ({"journal_properties": {key[len(_JOURNAL) :]: own[key] for key in own}} if own else {})


class AuditSection(Section):
    """The audit trail's author and signing key (a PEM file)."""

    principal: str | None = Field(default=None, min_length=1, max_length=200)
    signing_key: Path | None = None
    checkpoint_every: Seconds = Field(default=86400.0, ge=60.0, le=86400.0)


class MetricsSection(Section):
    listen: str = Field(pattern=LISTEN, description="an address to listen on: write HOST:PORT, such as 127.0.0.1:9464")

    @property
    def host(self) -> str:
        """`::1` without its brackets."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """0 means any free port."""
        return int(self.listen.rpartition(":")[2])


class ServeSection(Section):
    listen: str = Field(
        default="127.0.0.1:9192",
        pattern=LISTEN,
        description="an address to listen on: write HOST:PORT, such as 127.0.0.1:9192",
    )
    advertise: str | None = Field(
        default=None,
        pattern=LISTEN,
        description="the address that clients connect to: write HOST:PORT, such as archive.example.org:9192",
    )
    allow_anonymous: bool = False
    cluster_id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="an id for the nodes of one archive: write letters, digits, - and _, up to 64 of them",
    )
    node_id: int | None = Field(default=None, ge=0, le=2**31 - 1)
    heartbeat: Seconds = Field(default=1.0, ge=0.05, le=60.0)
    lost_after: Seconds = Field(default=5.0, ge=0.2, le=600.0)
    compression: ServedCompression = "original"
    threads: int = Field(default=2, ge=1, le=256)
    cache_size: Bytes = Field(default=256 << 20, ge=1 << 20)
    read_ahead: Bytes = Field(default=4 << 20, ge=0, le=1 << 30)
    open_streams: int = Field(default=16, ge=0, le=4096)
    disk_cache: Bytes = Field(default=1 << 30, ge=0)
    disk_cache_folder: Path | None = None
    response_memory: Bytes = Field(default=256 << 20, ge=1 << 20)
    spread_answers: bool = True
    refresh: Seconds = Field(default=2.0, ge=0.1, le=3600.0)
    group_heartbeat: Seconds = Field(default=5.0, ge=0.1, le=60.0)
    group_session: Seconds = Field(default=45.0, ge=1.0, le=1800.0)
    offset_retention: Seconds = Field(default=7 * 86400.0, ge=3600.0)
    max_offset_metadata: Bytes = Field(default=4 << 10, ge=0, le=1 << 20)
    max_connections: int = Field(default=1000, ge=1, le=100_000)
    max_request_size: Bytes = Field(default=4 << 20, ge=1 << 10, le=1 << 30)
    max_connections_per_address: int | None = Field(default=None, ge=1, le=100_000)
    max_unauthenticated_request_size: Bytes = Field(default=64 << 10, ge=1 << 10, le=1 << 20)
    loop_share: float = Field(default=0.25, gt=0.0, le=1.0)
    request_memory: Bytes = Field(default=64 << 20, ge=1 << 20)
    handshake_timeout: Seconds = Field(default=10.0, ge=0.1, le=600.0)
    idle_timeout: Seconds = Field(default=600.0, ge=1.0, le=86400.0)
    tls: TlsSection | None = None
    sasl: SaslSection | None = None
    oauth: OauthSection | None = None
    acls: tuple[AclSection, ...] = ()
    quotas: tuple[QuotaSection, ...] = ()
    metrics: str | None = Field(
        default=None,
        pattern=LISTEN,
        description="an address to listen on: write HOST:PORT, such as 127.0.0.1:9465",
    )
    access_log: Path | None = None
    access_log_share: float = Field(default=1.0, gt=0.0, le=1.0)

    @model_validator(mode="after")
    def _several_beats(self) -> Self:
        if self.lost_after < 3 * self.heartbeat:
            raise ValueError("`lost_after` must be three times `heartbeat` or more: one heartbeat may be late or lost")
        return self

    @model_validator(mode="after")
    def _time_to_beat(self) -> Self:
        if self.group_session <= self.group_heartbeat:
            raise ValueError("`group_session` must be longer than `group_heartbeat`: give members time to be heard")
        return self


class TracesSection(Section):
    endpoint: str = Field(
        pattern=r"^https?://\S+$", description="an address: write http://HOST:4318/v1/traces, or https://…"
    )
    headers: str = Field(
        default="",
        pattern=r"^([^=,\s]+=[^,]*(,[^=,\s]+=[^,]*)*)?$",
        repr=False,
        description="a list of headers: write name=value,name=value",
    )

    @property
    def named_headers(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in self.headers.split(",") if pair)


class ConfigFile(Section):
    kafka: Mapping[str, str] = Field(repr=False)
    catalog: Mapping[str, str] = Field(repr=False)
    registry: RegistrySection
    spark: Mapping[str, str] = Field(default_factory=dict, repr=False)
    archive: ArchiveSection = ArchiveSection()
    audit: AuditSection = AuditSection()
    schema_registry: SchemaRegistrySection | None = None
    metrics: MetricsSection | None = None
    serve: ServeSection = ServeSection()
    flight: FlightSection = FlightSection()
    index: IndexSection = IndexSection()
    traces: TracesSection | None = None
    defaults: Mapping[str, object] = Field(default_factory=dict)
    topics: Mapping[str, Mapping[str, object]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _required_options(self) -> Self:
        if not self.kafka.get("bootstrap.servers") and (self.kafka or needs_kafka(self.defaults, self.topics)):
            raise ValueError('kafka: "bootstrap.servers" is missing: name at least one broker, host:port')
        if not self.catalog.get("uri"):
            raise ValueError("catalog: `uri` is missing: give the address of the Iceberg REST catalog")
        if "@" in urlsplit(self.catalog["uri"]).netloc:
            raise ValueError(
                "catalog: `uri` names a user, which the catalog's client would not send: leave `user:password@` out, "
                "and give `credential` (id:secret) or `token`"
            )
        check_auth(self.catalog, "catalog: ")
        check_certificates(self.catalog, "catalog: ")
        check_store_settings(self.catalog, "catalog: ")
        check_store_settings({**self.catalog, **self.archive.journal_properties}, "archive: journal.")
        check_store_location(self.archive.journal or "")
        return self
