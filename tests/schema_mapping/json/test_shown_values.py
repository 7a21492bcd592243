"""Values are shown as sent, on one line."""

from __future__ import annotations

import pyarrow as pa

from schema_mapping.json.shown_values import shown_values
from tests.support.schemas.hostile_json import ORDER, odd_values
from tests.support.schemas.strategies_json import json_mapping


def test_values_are_shown_on_one_line() -> None:
    values = pa.array([*odd_values(), b'{\r\n\t"id": 1,\n "name": "a\\nb"}\n', None], pa.binary())
    rows = json_mapping(ORDER).decode(values)
    for value, error, shown in zip(
        values.to_pylist(),
        rows.field("__err__").to_pylist(),
        shown_values("Order", values, rows).to_pylist(),
        strict=True,
    ):
        if value is None:
            assert shown is None
        elif error is not None:
            assert (shown["json"], shown["reason"]) == (None, f"not decoded: {error}")
        else:
            assert "\n" not in shown["json"]
            assert "\r" not in shown["json"]
            assert shown["json"].split() == value.decode().split()
