"""An OpenTelemetry request: a dozen spans with attributes, events and links."""

from __future__ import annotations

import random
from typing import Any

START = 1_763_000_000_000_000_000
ROUTES = ("/orders", "/orders/{id}", "/customers/{id}/orders", "/health", "/cart/items")
SYSTEMS = ("postgresql", "redis", "kafka")


def traces_data(draw: random.Random, index: int) -> dict[str, Any]:
    now = START + index * 1_000_000_000
    resource = {
        "attributes": [
            _text("service.name", draw.choice(("checkout", "catalogue", "payment"))),
            _text("service.version", "2.31.4"),
            _text("deployment.environment.name", "production"),
            _text("k8s.pod.name", f"checkout-7c9d8f6b5-{draw.randrange(36**5):05x}"),
            _number("process.pid", draw.randrange(1, 40_000)),
            {
                "key": "process.command_args",
                "value": {"array_value": {"values": [{"string_value": word} for word in ("python", "-m", "shop")]}},
            },
        ]
    }
    scope = {"name": "opentelemetry.instrumentation.asgi", "version": "0.66b2"}
    trace = draw.randbytes(16)
    spans = [_span(draw, now, trace) for _ in range(draw.randrange(8, 17))]
    return {
        "resource_spans": [
            {
                "resource": resource,
                "scope_spans": [{"scope": scope, "spans": spans}],
                "schema_url": "https://opentelemetry.io/schemas/1.37.0",
            }
        ]
    }


def _text(key: str, text: str) -> dict[str, Any]:
    return {"key": key, "value": {"string_value": text}}


def _number(key: str, number: int) -> dict[str, Any]:
    return {"key": key, "value": {"int_value": number}}


def _span(draw: random.Random, now: int, trace: bytes) -> dict[str, Any]:
    start = now + draw.randrange(10**9)
    end = start + int(draw.expovariate(1e-7))
    failed = draw.random() < 0.05
    return {
        "trace_id": trace,
        "span_id": draw.randbytes(8),
        "parent_span_id": draw.randbytes(8),
        "flags": 257,
        "name": f"GET {draw.choice(ROUTES)}",
        "kind": draw.randrange(1, 6),
        "start_time_unix_nano": start,
        "end_time_unix_nano": end,
        "attributes": _server(draw) if draw.random() < 0.5 else _database(draw),
        "events": [_event(end)] if failed else [],
        "links": [{"trace_id": draw.randbytes(16), "span_id": draw.randbytes(8)}] if draw.random() < 0.1 else [],
        "status": {"code": 2, "message": "deadline exceeded"} if failed else {},
    }


def _server(draw: random.Random) -> list[dict[str, Any]]:
    return [
        _text("http.request.method", "GET"),
        _text("http.route", draw.choice(ROUTES)),
        _text("url.path", f"/orders/{draw.randrange(10**6)}"),
        _text("user_agent.original", "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0"),
        _number("http.response.status_code", draw.choice((200, 200, 200, 404, 503))),
        _number("server.port", 8443),
    ]


def _database(draw: random.Random) -> list[dict[str, Any]]:
    return [
        _text("db.system.name", draw.choice(SYSTEMS)),
        _text(
            "db.query.text", "SELECT id, status, total FROM orders WHERE customer = $1 ORDER BY created DESC LIMIT 20"
        ),
        _number("db.response.returned_rows", draw.randrange(21)),
        {"key": "db.duration", "value": {"double_value": draw.random()}},
        {"key": "db.cached", "value": {"bool_value": draw.random() < 0.2}},
    ]


def _event(at: int) -> dict[str, Any]:
    return {
        "time_unix_nano": at,
        "name": "exception",
        "attributes": [
            _text("exception.type", "TimeoutError"),
            _text("exception.stacktrace", 'Traceback (most recent call last):\n  File "shop/orders.py", line 57\n' * 8),
        ],
    }
