"""Types of `archiver.local`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

from archiver.local import Endpoints, LocalStack, PartStatus, StackStatus, Started


def stack(folder: Path) -> None:
    stack = LocalStack(folder)
    assert_type(stack.up(lambda part, step: None), Endpoints)
    assert_type(stack.up(brokers=3), Endpoints)
    assert_type(stack.ensure(), Started)
    assert_type(stack.down(only=["kafka-2"]), tuple[str, ...])
    assert_type(stack.status(), StackStatus)
    assert_type(stack.endpoints, Endpoints)
    assert_type(stack.directory, Path)


def endpoints(endpoints: Endpoints) -> None:
    assert_type(endpoints.bootstrap_servers, str)
    assert_type(endpoints.config_path, Path)
    assert_type(endpoints.postgres_dsn, str)
    assert_type(endpoints.s3_endpoint, str)
    assert_type(endpoints.catalog_properties, Mapping[str, str])


def status(status: StackStatus, started: Started) -> None:
    assert_type(status.parts, tuple[PartStatus, ...])
    assert_type(status.endpoints, Endpoints | None)
    assert_type(status.ready, bool)
    assert_type(status.to_json(with_secrets=True), dict[str, Any])
    assert_type(started.endpoints, Endpoints)
    assert_type(started.started, tuple[str, ...])
