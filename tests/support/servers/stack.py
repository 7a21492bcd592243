"""The servers of the tests, and factories of topics, databases, configurations and clients."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from psycopg import sql
from pyiceberg.catalog import Catalog, load_catalog

from archiver.local import Endpoints
from archiver.local.config_file import render
from tests.support.timing.eventually import eventually

_NUMBERS = itertools.count()
_ADMIN_TIMEOUT = 30.0


def unique(prefix: str) -> str:
    """Lower-case letters, digits and `_`."""
    return f"{prefix}_{os.getpid()}_{next(_NUMBERS)}_{secrets.token_hex(3)}"


class Stack:
    """Makes everything fresh, and removes nothing."""

    def __init__(self, endpoints: Endpoints, scratch: Path) -> None:
        self.endpoints = endpoints
        self.scratch = scratch
        self._admin: AdminClient | None = None

    @property
    def bootstrap_servers(self) -> str:
        return self.endpoints.bootstrap_servers

    @property
    def s3_endpoint(self) -> str:
        return self.endpoints.s3_endpoint

    @property
    def access_key(self) -> str:
        return self.endpoints.access_key

    @property
    def secret_key(self) -> str:
        return self.endpoints.secret_key

    @property
    def bucket(self) -> str:
        return self.endpoints.bucket

    @property
    def catalog_properties(self) -> dict[str, str]:
        return dict(self.endpoints.catalog_properties)

    @property
    def postgres_dsn(self) -> str:
        return self.endpoints.postgres_dsn

    @property
    def config_path(self) -> Path:
        return self.endpoints.config_path

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        return self._admin

    def catalog(self) -> Catalog:
        return load_catalog("stack", **self.endpoints.catalog_properties)

    def topic(self, partitions: int = 1, config: Mapping[str, str] | None = None, *, name: str | None = None) -> str:
        name = name or unique("topic")
        copies = self.bootstrap_servers.count(",") + 1
        new = NewTopic(name, num_partitions=partitions, replication_factor=copies, config=dict(config or {}))
        self.admin.create_topics([new], operation_timeout=_ADMIN_TIMEOUT)[name].result(_ADMIN_TIMEOUT)
        self._wait_for_listing(name, is_listed=True)
        return name

    def delete_topic(self, name: str) -> None:
        self.admin.delete_topics([name], operation_timeout=_ADMIN_TIMEOUT)[name].result(_ADMIN_TIMEOUT)
        self._wait_for_listing(name, is_listed=False)

    def _wait_for_listing(self, topic: str, *, is_listed: bool) -> None:
        """Brokers lag behind the controller."""
        change = "creation" if is_listed else "deletion"
        eventually(
            lambda: (topic in self.admin.list_topics(timeout=_ADMIN_TIMEOUT).topics) is is_listed,
            f"the brokers hear of the {change} of {topic}",
            seconds=_ADMIN_TIMEOUT,
            every=0.01,
        )

    def database(self) -> str:
        name = unique("db")
        with psycopg.connect(self.postgres_dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return urlunsplit(urlsplit(self.postgres_dsn)._replace(path=f"/{name}"))

    def config(self, topics: Mapping[str, Mapping[str, Any]] | None = None, **overrides: Mapping[str, Any]) -> Path:
        """Write an archiver.toml with fresh names; `overrides` are merged into sections."""
        folder = self.scratch / unique("config")
        folder.mkdir(parents=True)
        document: dict[str, dict[str, Any]] = tomllib.loads(render(self.endpoints))
        document["registry"]["dsn"] = self.database()
        document["archive"]["spool"] = str(folder / "spool")
        document["archive"]["journal"] += f"/{folder.name}"  # a walk through one doesn't read the objects of all tests
        document["topics"] = {
            name: {"table": f"kafka.{unique('t')}", "on_schema_change": "apply", **keys}
            for name, keys in (topics or {}).items()
        }
        for section, values in overrides.items():
            document.setdefault(section, {}).update(values)
        path = folder / "archiver.toml"
        path.write_text(to_toml(document), encoding="utf-8")
        path.chmod(0o600)
        return path

    def producer(self, **options: Any) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap_servers, "linger.ms": 5, **_dotted(options)})

    def consumer(self, **options: Any) -> Consumer:
        defaults = {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": unique("group"),
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,  # else the end of a partition is reported half a second late
        }
        return Consumer({**defaults, **_dotted(options)})

    def produce(self, topic: str, *messages: Mapping[str, Any], **options: Any) -> None:
        """`messages` are arguments of Producer.produce."""
        failures: list[Any] = []
        producer = self.producer(**options)
        for message in messages:
            while True:
                try:
                    producer.produce(topic, **message, on_delivery=lambda error, _: error and failures.append(error))
                    break
                except BufferError:
                    producer.poll(0.1)
        if left := producer.flush(60):
            raise TimeoutError(f"{left} records of {topic} were not delivered")
        if failures:
            raise KafkaException(failures[0])

    def begun(self, topic: str, *messages: Mapping[str, Any], name: str | None = None) -> Producer:
        """Return a producer with an open transaction.

        End it with a time limit: librdkafka may wait without end.
        """
        identity = name or unique("writer")
        producer = self.producer(transactional_id=identity)
        try:
            producer.init_transactions(30)
        except KafkaException:  # a coordinator that is still loading; the next producer takes the id over
            producer = self.producer(transactional_id=identity)
            producer.init_transactions(60)
        producer.begin_transaction()
        for message in messages:
            producer.produce(topic, **message)
        if left := producer.flush(30):  # an abort purges what isn't sent
            raise TimeoutError(f"{left} records of {topic} were not delivered")
        return producer


def to_toml(document: Mapping[str, Any]) -> str:
    lines: list[str] = []
    for section, values in document.items():
        for name, table in values.items() if section == "topics" else ((None, values),):
            lines.append(f"[{section}.{_quoted(name)}]" if name else f"[{section}]")
            lines += [f"{_quoted(key)} = {_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    match value:
        case Mapping():
            return "{ " + ", ".join(f"{_quoted(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
        case Path():
            return _quoted(str(value))
        case _:
            return json.dumps(value, ensure_ascii=False)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _dotted(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in options.items()}
