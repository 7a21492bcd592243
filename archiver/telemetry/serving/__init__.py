"""What operators see of a server: metrics, health, and a line for each request if they want one.

- `traffic`: requests, as they are `answered`; counts them, and has them logged
- `budget_refusals`: what principals were refused that have taken what they may
- `access_log`: one JSON object a request, in a file
- `instruments`: the metrics, read from the parts of a server when they are asked for
- `lag`: how far groups are behind
- `health`: whether the server lives, and what is away
"""

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
