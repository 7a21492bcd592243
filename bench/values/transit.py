"""GTFS-realtime: trips, vehicles and sometimes an alert, a few kilobytes of proto2."""

from __future__ import annotations

import random
from typing import Any

NOW = 1_763_000_000


def feed_message(draw: random.Random, index: int) -> dict[str, Any]:
    now = NOW + index * 15
    return {
        "header": {"gtfs_realtime_version": "2.0", "incrementality": 0, "timestamp": now},
        "entity": [_entity(draw, now, number) for number in range(draw.randrange(10, 30))],
    }


def _entity(draw: random.Random, now: int, place: int) -> dict[str, Any]:
    route = f"{draw.randrange(1, 90)}"
    trip = {
        "trip_id": f"{route}_{draw.randrange(10**6)}",
        "route_id": route,
        "direction_id": draw.randrange(2),
        "start_time": f"{draw.randrange(24):02d}:{draw.randrange(60):02d}:00",
        "start_date": "20251113",
        "schedule_relationship": 0,
    }
    vehicle = {"id": f"bus-{draw.randrange(3000)}", "label": f"{route} Central Station"}
    chance = draw.random()
    if chance < 0.5:
        return {"id": f"t{place}", "trip_update": _trip_update(draw, now, trip, vehicle)}
    if chance < 0.97:
        return {"id": f"v{place}", "vehicle": _position(draw, now, trip, vehicle)}
    return {"id": f"a{place}", "alert": _alert(draw, now, route)}


def _trip_update(draw: random.Random, now: int, trip: dict[str, Any], vehicle: dict[str, Any]) -> dict[str, Any]:
    first = draw.randrange(1, 20)
    delay = int(draw.gauss(60, 120))
    return {
        "trip": trip,
        "vehicle": vehicle,
        "stop_time_update": [
            {
                "stop_sequence": first + stop,
                "stop_id": f"{draw.randrange(10**5):05d}",
                "arrival": {"delay": delay, "time": now + stop * 90 + delay},
                "departure": {"delay": delay, "time": now + stop * 90 + delay + 20},
                "schedule_relationship": 0,
            }
            for stop in range(draw.randrange(3, 20))
        ],
        "timestamp": now,
        "delay": delay,
    }


def _position(draw: random.Random, now: int, trip: dict[str, Any], vehicle: dict[str, Any]) -> dict[str, Any]:
    return {
        "trip": trip,
        "vehicle": vehicle,
        "position": {
            "latitude": 52 + draw.random(),
            "longitude": 4 + draw.random(),
            "bearing": draw.random() * 360,
            "speed": draw.random() * 20,
        },
        "current_stop_sequence": draw.randrange(1, 40),
        "stop_id": f"{draw.randrange(10**5):05d}",
        "current_status": draw.randrange(3),
        "timestamp": now - draw.randrange(30),
        "occupancy_status": draw.randrange(6),
    }


def _alert(draw: random.Random, now: int, route: str) -> dict[str, Any]:
    text = f"Line {route} is diverted at Central Station until further notice"
    return {
        "active_period": [{"start": now, "end": now + 7200}],
        "informed_entity": [{"route_id": route, "agency_id": "RET"}],
        "cause": draw.randrange(1, 13),
        "effect": draw.randrange(1, 10),
        "header_text": {"translation": [{"text": text, "language": "en"}]},
        "description_text": {"translation": [{"text": f"{text}. " * 4, "language": "en"}]},
    }
