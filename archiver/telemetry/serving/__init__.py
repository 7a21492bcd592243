"""Metrics, health and access log of a server."""

from archiver.telemetry.serving.access_log import AccessLog
from archiver.telemetry.serving.answered import Answered
from archiver.telemetry.serving.budget_refusals import BudgetRefusals
from archiver.telemetry.serving.health import ServeHealth
from archiver.telemetry.serving.instruments import ServeInstruments, ServingSources
from archiver.telemetry.serving.lag import GroupLag, KnownOffsets
from archiver.telemetry.serving.traffic import Traffic, error_in

__all__ = [
    "AccessLog",
    "Answered",
    "BudgetRefusals",
    "GroupLag",
    "KnownOffsets",
    "ServeHealth",
    "ServeInstruments",
    "ServingSources",
    "Traffic",
    "error_in",
]
