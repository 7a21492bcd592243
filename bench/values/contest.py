"""Runs sides in turns with the same values: seconds of a core, as table and JSON."""

from __future__ import annotations

import argparse
import gc
import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from values.peers import Bench, Contender
from values.shapes import main_shapes, single_loops

BEST_PEER = "ptars"
ENOUGH = 3.0  # seconds after which a slow side stops early
PEERS = ("ptars", "protarrow", "pybufarrow", "protobuf", "pyarrow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    shape: str
    side: Contender
    records: int
    size: int
    seconds: tuple[float, ...]

    def speed(self, seconds: float) -> float:
        return self.size / seconds / 1e6

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def to_json(self, ours: Result) -> dict[str, Any]:
        content: dict[str, Any] = {"shape": self.shape, "side": self.side.name, "note": self.side.note}
        if not self.seconds:
            return content | {"cannot": self.side.reason}
        return content | {
            "record_bytes": round(self.size / self.records, 1),
            "mb_per_second": {
                "median": round(self.speed(self.median), 1),
                "least": round(self.speed(max(self.seconds)), 1),
                "most": round(self.speed(min(self.seconds)), 1),
            },
            "records_per_second": round(self.records / self.median),
            "rounds": len(self.seconds),
            "ours_is_faster_by": round(self.median / ours.median, 2),
        }


def play(bench: Bench, sides: Sequence[Contender], rounds: int) -> list[Result]:
    seconds: dict[str, list[float]] = {side.name: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            taken = seconds[side.name]
            if side.run is not None and (len(taken) < 3 or sum(taken) < ENOUGH):
                taken.append(_time(side.run))
    return [
        Result(
            shape=bench.shape.name,
            side=side,
            records=len(bench.values),
            size=bench.size,
            seconds=tuple(seconds[side.name]),
        )
        for side in sides
    ]


def _time(run: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    start = time.process_time()
    run()
    took = time.process_time() - start
    gc.enable()
    return took


def contest(title: str, sides: Callable[[Bench], Sequence[Contender]]) -> None:
    options = _options(title)
    shapes = [shape for shape in (*main_shapes(), *single_loops()) if options.shape in shape.name]
    results: list[list[Result]] = []
    for shape in shapes:
        bench = Bench(shape, int(options.megabytes * 1e6))
        results.append(play(bench, sides(bench), options.rounds))
    console = Console(width=None if Console().is_terminal else 160)
    console.print(_table(title, results))
    _print_notes(console, results)
    summary = _summary(results)
    if summary:
        console.print(
            f"Beside {BEST_PEER}, over the five shapes: {summary['geometric_mean']} times as fast in the geometric"
            f" mean, {summary['least']} times at the least."
        )
    if options.json:
        _write_json(options.json, title, results, summary)


def _options(title: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--megabytes", type=float, default=4.0, help="values of each shape")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--shape", default="", help="only shapes whose name holds this")
    parser.add_argument("--json", type=Path, help="a file for all the numbers")
    return parser.parse_args()


def _table(title: str, results: Sequence[Sequence[Result]]) -> Table:
    table = Table(title=f"{title}: MB/s, median (least to most); thousand records/s; ours / theirs")
    table.add_column("shape")
    for result in results[0]:
        table.add_column(result.side.name, justify="right")
    for line in results:
        first = line[0]
        table.add_row(f"{first.shape}\n{first.size / first.records:.0f} bytes", *(_cell(side, first) for side in line))
    return table


def _cell(result: Result, ours: Result) -> str:
    if not result.seconds:
        return "can't"
    least, most = result.speed(max(result.seconds)), result.speed(min(result.seconds))
    lines = [
        f"{result.speed(result.median):.0f}{'*' if result.side.note else ''}",
        f"({least:.0f} to {most:.0f})",
        f"{result.records / result.median / 1e3:,.0f} k/s",
    ]
    if result is not ours:
        lines.append(f"{result.median / ours.median:.2f}x")
    return "\n".join(lines)


def _print_notes(console: Console, results: Sequence[Sequence[Result]]) -> None:
    for result in (result for line in results for result in line):
        if not result.seconds:
            console.print(f"{result.side.name} can't do {result.shape}: {result.side.reason}")
        if result.side.note:
            console.print(f"* {result.side.name}, {result.shape}: {result.side.note}")


def _summary(results: Sequence[Sequence[Result]]) -> dict[str, float]:
    five = {shape.name for shape in main_shapes()}
    ratios = [
        result.median / line[0].median
        for line in results
        for result in line
        if result.side.name == BEST_PEER and result.seconds and result.shape in five
    ]
    if len(ratios) < len(five):
        return {}
    return {
        "geometric_mean": round(math.exp(statistics.fmean(map(math.log, ratios))), 2),
        "least": round(min(ratios), 2),
    }


def _write_json(path: Path, title: str, results: Sequence[Sequence[Result]], summary: dict[str, float]) -> None:
    content = {
        "title": title,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "peers": {name: version(name) for name in PEERS},
        "beside_" + BEST_PEER: summary,
        "results": [result.to_json(line[0]) for line in results for result in line],
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
