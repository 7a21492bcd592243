"""Bytes that each choice of `well_known_types` keeps for Timestamps, by the clock of the producers.

Readings of a sensor, with times, maps and lists of times; the clock counts nanoseconds to seconds. The job's writer
writes one partition, in batches of 1,000 records. CPU of decoding and writing, best of three.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass
from rich.console import Console
from rich.table import Table
from stored_size import GROUP_ROWS, ours, translated

from archiver.wire import RECORDS
from schema_mapping import LedgerState, MappingOptions, assign, names
from schema_mapping.protobuf.descriptors import closure
from tests.support.schemas.proto_text import descriptor_of

PROTO: Final = """
syntax = "proto3"; package bench; import "google/protobuf/timestamp.proto";
message Reading {
  string device = 1; google.protobuf.Timestamp taken_at = 2; double celsius = 3; google.protobuf.Timestamp sent_at = 4;
  map<string, google.protobuf.Timestamp> seen_by = 5; repeated google.protobuf.Timestamp retries = 6; int64 number = 7;
}
"""
CLOCKS: Final = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
CHOICES: Final = ("struct", "timestamp", "native")
START: Final = 1_700_006_400_000_000_000
STEP: Final = 37_000_000
SEED: Final = 7
BATCH: Final = 1_000


def readings(count: int, unit: int, kind: type[Any]) -> list[bytes]:
    """Times are whole multiples of `unit` nanoseconds."""
    draw = random.Random(SEED)

    def at(nanoseconds: int) -> dict[str, int]:
        seconds, rest = divmod(nanoseconds // unit * unit, 1_000_000_000)
        return {"seconds": seconds, "nanos": rest}

    values = []
    for index in range(count):
        taken = START + index * STEP + draw.randrange(STEP)
        sent = taken + draw.randrange(5_000_000)
        often = index % 10 == 0
        values.append(
            kind(
                device=f"sensor-{draw.randrange(500)}",
                taken_at=at(taken),
                celsius=round(draw.gauss(20, 4), 1),
                sent_at=at(sent),
                seen_by={f"gateway-{number}": at(sent + number * 1_000_003) for number in range(2)} if often else {},
                retries=[at(sent + draw.randrange(10**9)) for _ in range(3)] if often else [],
                number=index,
            ).SerializeToString(deterministic=True)
        )
    return values


def records(values: list[bytes]) -> pa.RecordBatch:
    count = len(values)
    bounds = np.append(np.arange(0, count, BATCH), count)
    batches = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    constant = {"timestamp_type": 0, "leader_epoch": 0, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    columns: dict[str, Any] = {
        "offset": np.arange(count),
        "timestamp": START // 1_000_000 + np.arange(count) * (STEP // 1_000_000),
        "key": [None] * count,
        "value": values,
        "headers": [[] for _ in range(count)],
        "batch_start": bounds[:-1][batches],
        "batch_end": bounds[1:][batches] - 1,
        "append_timestamp": [None] * count,
        "attributes": np.zeros(count),
        **{name: np.full(count, value) for name, value in constant.items()},
    }
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in RECORDS], schema=RECORDS)


def measured(batch: pa.RecordBatch, message: Descriptor, chosen: Any, path: Path) -> dict[str, float]:
    """Return the bytes, the share of values kept raw, and CPU seconds."""
    options = MappingOptions(well_known_types=chosen)
    row = assign(LedgerState(), value=closure(message), options=options).row
    started = time.process_time()
    rows = translated(batch, row)
    spent = time.process_time() - started + ours(rows, row, path, 3)
    raw = sum(len(part) - pc.struct_field(part.column(names.VAL), names.RAW).null_count for part in rows)
    return {"bytes": path.stat().st_size, "raw": raw / batch.num_rows, "cpu_seconds": spent}


def main() -> None:
    parser = argparse.ArgumentParser(description="Timestamps")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--json", type=Path, help="a file for all the numbers")
    options = parser.parse_args()
    message = descriptor_of(PROTO, "bench.Reading")
    kind = GetMessageClass(message)
    table = Table(title=f"{options.records:,} readings, in row groups of {GROUP_ROWS:,}")
    for heading in ("clock", "well_known_types", "bytes", "a record", "of struct", "kept raw", "µs of CPU a record"):
        table.add_column(heading, justify="left" if heading in ("clock", "well_known_types") else "right")
    numbers: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for clock, unit in CLOCKS.items():
            batch = records(readings(options.records, unit, kind))
            numbers[clock] = {}
            for chosen in CHOICES:
                rounds = [measured(batch, message, chosen, Path(folder) / "rows.parquet") for _ in range(3)]
                best = numbers[clock][chosen] = min(rounds, key=lambda round_: round_["cpu_seconds"])
                table.add_row(
                    clock,
                    chosen,
                    f"{best['bytes']:,}",
                    f"{best['bytes'] / options.records:.1f}",
                    f"{best['bytes'] / numbers[clock]['struct']['bytes']:.3f}",
                    f"{best['raw']:.0%}",
                    f"{1e6 * best['cpu_seconds'] / options.records:.2f}",
                )
    Console(width=None if Console().is_terminal else 120).print(table)
    if options.json:
        options.json.write_text(json.dumps({"records": options.records, **numbers}, indent=2) + "\n")


if __name__ == "__main__":
    main()
