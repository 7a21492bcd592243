"""Makes a first configuration from a cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from archiver.config import load_config
from archiver.config.sources import flatten_borrowed, overlay_environment, read_toml
from archiver.errors import ConfigError
from archiver.kafka import BrokerClient
from archiver.schemas.registry.client import SchemaRegistry, client_of
from archiver.schemas.registry.settings import schema_registry_settings
from archiver.setup.cluster_topics import TopicSize, topic_sizes
from archiver.setup.first_config import WITHOUT_ANSWER, TopicDraft, config_text, registered_formats
from archiver.setup.samples import sample
from catalog.iceberg.auth_settings import CERTIFICATE_FILES
from schema_mapping.errors import ContextError

_TOPICS = ("topics", "defaults")
_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "archive": ("spool",),
    "audit": ("signing_key",),
    "catalog": CERTIFICATE_FILES,
    "flight": ("wal",),
    "schema_registry": ("ca_file", "cert_file", "key_file"),
    "serve": ("tls.certificate", "tls.key", "tls.client_ca", "oauth.jwks_file", "oauth.ca_file"),
}
"""Keys with paths, which are relative to their configuration's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstConfig:
    """`sections` are all but topics; `topics` are globs. Without `samples` nothing is read."""

    path: Path
    sections: Mapping[str, Mapping[str, Any]]
    topics: Sequence[str] = ()
    samples: int = 20
    may_replace: bool = False

    def write(self) -> tuple[TopicDraft, ...]:
        """Raises ConfigError if the file exists and may not be replaced, and BrokerClient's errors."""
        if not self.may_replace and (self.path.exists() or self.path.is_symlink()):
            raise ConfigError(
                "There is a configuration here already: name another file with --config, or give --force to replace it",
                file=str(self.path),
            )
        cluster_id, drafts = self._ask()
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        head = (
            f"Written by `archiver init`, {now}, from the cluster {cluster_id}.",
            "Comments say what was seen in a few records; nobody can know from bytes what they mean.",
            f"Next: archiver check --config {self.path}, then archiver archive --config {self.path}",
        )
        _write(self.path, config_text(head, self.sections, drafts))
        return drafts

    def _ask(self) -> tuple[str, tuple[TopicDraft, ...]]:
        merged = flatten_borrowed(overlay_environment(self.sections, os.environ))
        kafka = merged.get("kafka", {})
        if not kafka.get("bootstrap.servers"):
            raise ConfigError("Say where Kafka is: --bootstrap HOST:PORT, or --from a configuration that names it")
        with BrokerClient(kafka) as brokers:
            names = [name for name in brokers.topics() if self._wants(name)]
            registry = _schema_registry(merged.get("schema_registry"))
            drafts = tuple(self._draft(brokers, size, registry) for size in topic_sizes(brokers, names))
            return brokers.cluster_id(), drafts

    def _wants(self, topic: str) -> bool:
        return not self.topics or any(fnmatchcase(topic, glob) for glob in self.topics)

    def _draft(self, brokers: BrokerClient, size: TopicSize, registry: SchemaRegistry | None) -> TopicDraft:
        if not self.samples or size.error is not None:
            return TopicDraft(size=size)
        try:
            keys, values = sample(brokers, size.topic, self.samples)
        except ContextError as error:
            return TopicDraft(size=size, error=error)
        formats: dict[str, str] = {}
        with suppress(ContextError):  # then the comment alone says what the bytes look like
            formats = {} if registry is None else registered_formats(registry, size.topic, keys, values)
        return TopicDraft(size=size, keys=keys, values=values, formats=formats, asked_registry=registry is not None)


def sections_from(base: Path | None, bootstrap: str | None, settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`settings` (SECTION.KEY=VALUE) override `base`, and `bootstrap` both. Raises ConfigError.

    Missing servers get a placeholder.
    """
    sections: dict[str, dict[str, Any]] = {}
    if base is not None:
        tables = read_toml(base)
        sections = {name: dict(table) for name, table in tables.items() if name not in _TOPICS}
        for name, keys in _PATHS.items():
            _anchor(sections.get(name, {}), base.parent.resolve(), keys)
    for setting in settings:
        name, _, value = setting.partition("=")
        section, _, key = name.partition(".")
        if not key or "=" not in setting:
            raise ConfigError("--set is SECTION.KEY=VALUE, such as catalog.warehouse=lake", set=name)
        sections.setdefault(section, {})[key] = _reference(value)
    if bootstrap is not None:
        sections.setdefault("kafka", {})["bootstrap.servers"] = bootstrap
    for name, values in WITHOUT_ANSWER.items():
        for key, value in values.items():
            sections.setdefault(name, {}).setdefault(key, value)
    return sections


def _reference(value: str) -> Any:
    kind, _, rest = value.partition(":")
    return {kind: rest} if kind in {"env", "file"} and rest and not rest.startswith("//") else value


def _anchor(table: dict[str, Any], folder: Path, keys: Collection[str], prefix: str = "") -> None:
    for key, value in table.items():
        if isinstance(value, dict):
            _anchor(value, folder, keys, f"{prefix}{key}.")
        elif isinstance(value, str) and f"{prefix}{key}" in keys:
            table[key] = str(folder / value)


def _schema_registry(section: Any) -> SchemaRegistry | None:
    if section is None:
        return None
    from archiver.config.model import SchemaRegistrySection

    return client_of(schema_registry_settings(SchemaRegistrySection.model_validate(section)))


def _write(path: Path, text: str) -> None:
    """Atomic, for this user alone. Raises ConfigError if the file doesn't load."""
    folder = path.parent.resolve()
    try:
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.")
    except OSError as error:
        raise ConfigError(f"The configuration can't be written: {error.strerror}", file=str(path)) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        load_config(name)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
