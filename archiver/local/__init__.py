"""The embedded stack for development, tests and the demo: Postgres, Kafka, S3 and an Iceberg catalog, locally."""

from __future__ import annotations

from archiver.local.endpoints import Endpoints
from archiver.local.stack import LocalStack, Progress, Started
from archiver.local.status import PartStatus, StackStatus

__all__ = ["Endpoints", "LocalStack", "PartStatus", "Progress", "StackStatus", "Started"]
