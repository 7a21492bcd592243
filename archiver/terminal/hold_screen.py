"""Legal holds."""

from __future__ import annotations

from typing import Any

from archiver.upkeep.holds import Placed
from catalog.ranges.legal_holds import Hold


def hold_line(topic: str, hold: Hold) -> str:
    spans = "; ".join(span.text for span in hold.spans)
    line = f"{topic}: {hold.id} holds {spans}"
    if hold.placed_at:
        line += f", placed {hold.placed_at} by {hold.placed_by}"
    if hold.reason:
        line += f": {hold.reason}"
    if hold.released_at:
        why = f": {hold.released_why}" if hold.released_why else ""
        line += f"; released {hold.released_at} by {hold.released_by}{why}"
    return line


def placed_lines(placed: Placed) -> list[str]:
    lines = [hold_line(placed.topic, placed.hold)]
    lines += [
        f"partition {partition}: records before {offset:,} were retired before"
        for partition, offset in placed.retired.items()
    ]
    if placed.erased:
        lines.append(f"{placed.erased:,} of these offsets were erased before")
    if placed.in_doubt:
        lines.append(
            "a removal that was begun before may still take some of these records out of the table: run `archiver"
            f" reconcile {placed.topic}` to see. Their files stay in the store as long as the hold: commits"
            f" {', '.join(placed.in_doubt)}"
        )
    return lines


def placed_json(placed: Placed) -> dict[str, Any]:
    return {
        "hold": placed.hold.to_json(),
        "retired_before": {str(partition): offset for partition, offset in sorted(placed.retired.items())},
        "erased_before": placed.erased,
        "removals_in_doubt": list(placed.in_doubt),
    }
