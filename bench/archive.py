"""Time and CPU to archive a topic, compared with Spark's Kafka source and one fast process.

The orders of bench/data.py in 4 partitions, with two slots. Warm sides take turns. CPU is of driver, JVM and Python
workers; memory the peak of their proportional set sizes. Medians.

- archiver: the whole job, with upload and commit
- Spark, binary: key and value appended as binary to an Iceberg table
- one process: confluent-kafka, ptars and pyarrow to a local Parquet file, with and without headers
- avro, json (only with `--side`): the archiver with the same orders in these formats, typed by a schema file
- beside: the archiver of another checkout, with compiled kernels
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from archiving.cost import measured
from archiving.player import BENCH, HERE, Player, answer
from archiving.side import Setting, Side
from data import create_topic, produce
from rich.console import Console
from rich.table import Table
from values.written_orders import Format

from archiver.local import Endpoints, LocalStack
from tests.support.servers.stack import unique

WARM_RECORDS = 20_000
PARTITIONS = 4
SIDES = ("ours", "spark_binary", "one_process", "one_process_no_headers")
FORMATS: dict[str, Format] = {"avro": "avro", "json": "json"}
"""The sides with a topic of another format."""
BESIDE = "beside"
MIB = 1 << 20


def side_of(name: str, setting: Setting) -> Side:
    match name:
        case "ours":
            from archiving.ours import Ours

            return Ours(setting)
        case "avro" | "json":
            from archiving.ours import Ours

            return Ours(setting, FORMATS[name])
        case "spark_binary":
            from archiving.spark_binary import SparkBinary

            return SparkBinary(setting)
        case "one_process":
            from archiving.one_process import OneProcess

            return OneProcess(setting)
        case "one_process_no_headers":
            from archiving.one_process import OneProcess

            return OneProcess(setting, headers=False)
        case _:
            raise ValueError(name)


def serve(name: str, setting: Setting) -> None:
    side = side_of(name, setting)
    side.archive(setting.warm_topic)
    answer({"name": side.name})
    for _ in sys.stdin:
        cost = measured(partial(side.archive, setting.topic))
        answer(asdict(cost) | {"notes": side.notes(), "profile": side.profile()})


@contextmanager
def stack(folder: Path | None) -> Iterator[Endpoints]:
    if folder:
        yield LocalStack(folder).endpoints
        return
    with tempfile.TemporaryDirectory(prefix="archiver-bench-") as fresh:
        local = LocalStack(fresh)
        try:
            yield local.up()
        finally:
            local.down()


def summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    def of(name: str) -> list[float]:
        return [turn[name] * 1e6 / turn["records"] for turn in turns]

    return {
        "cpu_seconds": round(statistics.median(of("cpu_seconds")), 2),
        "cpu_spread": [round(min(of("cpu_seconds")), 2), round(max(of("cpu_seconds")), 2)],
        "wall_seconds": round(statistics.median(of("wall_seconds")), 2),
        "memory": statistics.median(turn["memory"] for turn in turns),
        "records": turns[0]["records"],
        "split": turns[-1]["split"],
        "notes": turns[-1]["notes"],
        "profile": {
            stage: round(statistics.median(turn["profile"][stage] * 1e6 / turn["records"] for turn in turns), 3)
            for stage in turns[-1]["profile"]
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Archiving")
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stack", type=Path, help="the folder of a running stack")
    parser.add_argument("--topic", help="a topic of bench/data.py that is there already")
    parser.add_argument("--side", choices=(*SIDES, *FORMATS), action="append", help="only this one; may be given again")
    parser.add_argument("--beside", type=Path, help="another checkout, which takes turns with the sides")
    parser.add_argument("--json", type=Path, help="a file for all the numbers")
    parser.add_argument("--be", choices=(*SIDES, *FORMATS), help=argparse.SUPPRESS)
    parser.add_argument("--warm-topic", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be:
        endpoints = LocalStack(options.stack).endpoints
        serve(
            options.be,
            Setting(endpoints=endpoints, topic=options.topic, warm_topic=options.warm_topic, folder=options.folder),
        )
        return
    with stack(options.stack) as endpoints, tempfile.TemporaryDirectory() as scratch:
        contest(options, endpoints, Path(scratch))


def contest(options: argparse.Namespace, endpoints: Endpoints, scratch: Path) -> None:
    names = (*(options.side or SIDES), *([BESIDE] if options.beside else []))
    topics = {
        format_: topics_of(format_, options, endpoints)
        for format_ in dict.fromkeys(FORMATS.get(name, "protobuf") for name in names)
    }
    with ExitStack() as closing:
        players: dict[str, Player] = {}
        for name in names:
            topic, warm = topics[FORMATS.get(name, "protobuf")]
            folder = scratch / name
            folder.mkdir()
            where = ["--stack", str(endpoints.directory), "--folder", str(folder)]
            of = ["--be", SIDES[0] if name == BESIDE else name, *where, "--topic", topic, "--warm-topic", warm]
            checkout = options.beside.resolve() if name == BESIDE else HERE
            bench = checkout / BENCH.name
            player = Player([str(bench / "archive.py"), *of], checkout=checkout, bench=bench)
            players[BESIDE if name == BESIDE else player.began["name"]] = player
            closing.callback(player.close)
        for player in players.values():
            player.turn()
        turns: dict[str, list[dict[str, Any]]] = {name: [] for name in players}
        for _ in range(options.rounds):
            for name, player in players.items():
                turn = player.turn()
                turns[name].append(turn)
                print(f"{name}: {turn['cpu_seconds']:.2f} CPU s, {turn['wall_seconds']:.1f} s", flush=True)
    summaries = {name: summary(taken) for name, taken in turns.items()}
    show(summaries)
    if options.json:
        options.json.write_text(json.dumps(summaries | {"turns": turns}, indent=2) + "\n")


def topics_of(format_: Format, options: argparse.Namespace, endpoints: Endpoints) -> tuple[str, str]:
    """Return a topic of orders, and a small one to warm up with."""
    topic, warm = unique("orders"), unique("warm")
    for name, count in ((warm, WARM_RECORDS), (topic, options.records)):
        if name == topic and options.topic and format_ == "protobuf":
            return options.topic, warm
        create_topic(endpoints.bootstrap_servers, name, PARTITIONS)
        produce(endpoints.bootstrap_servers, name, count, format_)
    return topic, warm


def show(found: dict[str, dict[str, Any]]) -> None:
    table = Table(title="Seconds for a million records, medians; theirs / ours")
    for heading in ("", "CPU", "least to most", "wall", "CPU ratio", "wall ratio", "MiB", "B a record"):
        table.add_column(heading, justify="right" if heading else "left")
    ours = found.get("archiver")
    for name, figures in found.items():
        ratios = [f"{figures[key] / ours[key]:.2f}x" if ours else "" for key in ("cpu_seconds", "wall_seconds")]
        spread = "{} to {}".format(*figures["cpu_spread"])
        memory = f"{figures['memory'] / MIB:,.0f}"
        stored = (
            f"{figures['notes']['file_bytes'] / figures['records']:.2f}" if "file_bytes" in figures["notes"] else ""
        )
        table.add_row(name, str(figures["cpu_seconds"]), spread, str(figures["wall_seconds"]), *ratios, memory, stored)
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    for name, figures in found.items():
        console.print(f"{name}, the last turn: CPU seconds by process {figures['split']} {figures['notes'] or ''}")
        if figures["profile"]:
            show_profile(console, name, figures["profile"])


def show_profile(console: Console, name: str, profile: dict[str, float]) -> None:
    table = Table(title=f"{name}: CPU seconds of the tasks for a million records, medians")
    for heading in ("stage", "seconds", "share"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
    whole = sum(profile.values())
    for stage, seconds in sorted(profile.items(), key=lambda item: -item[1]):
        table.add_row(stage, f"{seconds:.3f}", f"{seconds / whole:.0%}")
    console.print(table)


if __name__ == "__main__":
    main()
