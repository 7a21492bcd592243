"""The shapes of messages. `single_loops` are the hardest cases of one loop."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from tests.support.schemas.real_schemas import messages
from values import flat, orders, traces, transit

SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageShape:
    name: str
    descriptor: Descriptor
    make: Callable[[random.Random, int], Mapping[str, Any]]

    def values(self, size: int) -> Iterator[bytes]:
        """Yield messages by upb, with `size` bytes together."""
        kind = GetMessageClass(self.descriptor)
        draw, index = random.Random(SEED), 0
        while size > 0:
            value = kind(**self.make(draw, index)).SerializeToString()
            size -= len(value)
            index += 1
            yield value


def main_shapes() -> tuple[MessageShape, ...]:
    spans = messages("opentelemetry-proto-1.45.2")["opentelemetry.proto.trace.v1.TracesData"]
    feed = messages("gtfs-realtime-bindings-3.0.0")["transit_realtime.FeedMessage"]
    return (
        MessageShape(name="OpenTelemetry spans", descriptor=spans, make=traces.traces_data),
        MessageShape(name="GTFS-realtime feed", descriptor=feed, make=transit.feed_message),
        MessageShape(name="nested order", descriptor=orders.order_type(), make=orders.order),
        MessageShape(name="120 flat fields", descriptor=flat.wide_type(), make=flat.wide),
        MessageShape(name="two fields", descriptor=flat.tiny_type(), make=flat.tiny),
    )


def single_loops() -> tuple[MessageShape, ...]:
    return (
        MessageShape(name="long texts", descriptor=flat.texts_type(), make=flat.texts),
        MessageShape(name="packed runs", descriptor=flat.runs_type(), make=flat.runs),
    )
