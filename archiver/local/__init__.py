"""The embedded stack for development, tests and the demo."""

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
