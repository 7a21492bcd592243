"""The embedded stack for development, tests and the demo: Postgres, Kafka, S3 and an Iceberg catalog, locally.

`stack` starts and stops all parts, `part_runner` one of them. `kafka`, `postgres` and `seaweedfs` are the parts; `part`
says what a part must have. Only the command line, the demo and tests use this room: no job may depend on it.

A name is imported when it is first used: the versions of the parts are known without their clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archiver.light_start import late_names

if TYPE_CHECKING:
    from archiver.local.endpoints import Endpoints
    from archiver.local.stack import LocalStack, Progress, Started
    from archiver.local.status import PartStatus, StackStatus

__all__ = ["Endpoints", "LocalStack", "PartStatus", "Progress", "StackStatus", "Started"]

__getattr__ = late_names(
    __name__,
    {
        "archiver.local.endpoints": ("Endpoints",),
        "archiver.local.stack": ("LocalStack", "Progress", "Started"),
        "archiver.local.status": ("PartStatus", "StackStatus"),
    },
)
