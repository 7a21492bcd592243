"""Maintenance of a table that pyiceberg, DuckDB and Spark have rewritten.

With ARCHIVER_RECORD=1 docs/engines/rewritten.md gets the commands' output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from tests.chaos.commands import Commands
from tests.chaos.duckdb_files import written_by_duckdb
from tests.chaos.other_engine import OtherEngine, Place
from tests.support.archive import partitioned
from tests.support.archive.job_runs import without_registry
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.foreign_writes import table_of
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore:unclosed <socket:ResourceWarning"
    ),  # PySpark leaves sockets open after collect()
]

PAGE = Path(__file__).parents[2] / "docs" / "engines" / "rewritten.md"
BEGIN, END = "<!-- made by tests/integration/test_rewritten_table.py -->\n", "<!-- end -->"
EACH = 40
"""Records of a commit, in two partitions."""
_UNSEEN = re.compile(r" WARN |Setting default log|setLogLevel|:: |incubator|^\s*$")


class Operator:
    """Runs commands on a topic. `wrong` is unexpected output."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack = stack
        self.topic = stack.topic(2)
        settings = partitioned.settings(folder, terms=["day", "bucket(2, key.__raw__)"], snapshot_retention="0s")
        self.config = stack.config({self.topic: settings}, archive={"orphan_grace": "0s"})
        self.table = load_config(self.config).topic(self.topic).table
        self.transcript: list[str] = []
        self.wrong: list[str] = []
        self._values = Random(5)
        self._produced = 0

    def produce(self) -> None:
        numbers = range(self._produced, self._produced + EACH)
        self._produced += EACH
        messages = [
            {
                "key": b"k%d" % (number % 7),
                "value": partitioned.order(self._values, number),
                "partition": number % 2,
                "timestamp": partitioned.START + number,
            }
            for number in numbers
        ]
        self.stack.produce(self.topic, *messages)

    def heading(self, text: str) -> None:
        self.transcript.append(f"### {text}\n")

    def run(self, *words: str, exit_code: int = 0, says: str) -> None:
        command = (*words, *(() if words[0] == "registry" else (self.topic,)))
        done = subprocess.run(
            [sys.executable, "-m", "archiver", *command, "--config", str(self.config)],
            capture_output=True,
            check=False,
            env=os.environ | {"COLUMNS": "140", "ARCHIVER_OUTPUT": "text"},
            stdin=subprocess.DEVNULL,
            text=True,
        )
        printed = "\n".join(
            line.rstrip() for line in (done.stdout + done.stderr).splitlines() if not _UNSEEN.search(line)
        )
        shown = " ".join(f"'{word}'" if " " in word else word for word in command)
        ended = f"\nExit code {done.returncode}.\n" if done.returncode else ""
        self.transcript.append(self._plain(f"```console\n$ archiver {shown}\n{printed}\n```\n{ended}"))
        if done.returncode != exit_code or says not in " ".join(printed.split()):
            self.wrong.append(f"expected {exit_code} and {says!r}:\n{self.transcript[-1]}")

    def _plain(self, text: str) -> str:
        names = {self.topic: "orders", self.table: "kafka.orders", str(self.config): "archiver.toml"}
        for name, plain in (*names.items(), (self.table.rpartition(".")[2], "orders")):
            text = text.replace(name, plain)
        return text

    def check(self, gone: set[Place]) -> None:
        records = from_kafka(self.stack, self.topic, 2)
        left = [record for record in records if (record.partition, record.offset) not in gone]
        assert from_archive(self.config, self.topic, 2) == left
        self.transcript.append(f"A replay gives {len(left)} records, all equal to Kafka's.\n")

    def lose_registry(self, *, with_journal: bool) -> None:
        self.config = without_registry(self.stack, self.config, with_journal=with_journal)


def places(partition: int, *offsets: int) -> set[Place]:
    return {(partition, offset) for offset in offsets}


@pytest.fixture
def operator(stack: Stack, tmp_path: Path) -> Iterator[Operator]:
    operator = Operator(stack, tmp_path)
    yield operator
    if os.environ.get("ARCHIVER_RECORD"):
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{chr(10).join(operator.transcript)}\n{END}{after}")


def test_commands_on_a_rewritten_table(operator: Operator, engine: SparkEngine) -> None:
    stack, sql = operator.stack, engine.session.sql
    for _ in range(4):
        operator.produce()
        assert Commands(path=operator.config, topic=operator.topic).archive().succeeded
    pyiceberg = OtherEngine(lambda: table_of(stack, operator.config, operator.topic))
    duckdb = OtherEngine(lambda: table_of(stack, operator.config, operator.topic), write=written_by_duckdb)

    missing = places(0, 3, 4, 5, 6, 7, 40, 41) | places(1, 70, 71)
    pyiceberg.delete_copied(places(0, 3, 4, 5, 6, 7))
    duckdb.rewrite()
    sql(f"ALTER TABLE lake.{operator.table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')").collect()
    sql(f"DELETE FROM lake.{operator.table} WHERE kafka.partition = 0 AND kafka.offset IN (40, 41)").collect()
    sql(
        f"CALL lake.system.rewrite_data_files(table => '{operator.table}', strategy => 'sort',"
        " sort_order => 'kafka.offset DESC NULLS LAST', options => map('rewrite-all', 'true'))"
    ).collect()
    sql(f"DELETE FROM lake.{operator.table} WHERE kafka.partition = 1 AND kafka.offset IN (70, 71)").collect()

    operator.heading("Rows are missing")
    operator.run(
        "status", exit_code=1, says="missing: partition 0 [3, 8), [40, 42) 7 rows; partition 1 [70, 72) 2 rows"
    )
    operator.run("verify", exit_code=1, says="has 3 faults: 100 records proven")
    operator.run("erase", "--where", "partition = 0 and offset = 20", "--yes", exit_code=1, says="run `archiver refill")
    operator.run("expire", "--before", "10", "--rows", "--dry-run", says="10 (0), 10 (1)")
    operator.run("compact", "--min-files", "2", says="2 files became")
    operator.check(missing)
    operator.run("refill", says="partition 1 [70, 72): 2 rows from file")
    operator.run("verify", says="is as it was archived: 160 records proven")
    operator.check(set())

    operator.heading("The engines rewrite the table again")
    duckdb.rewrite()
    sql(
        f"CALL lake.system.rewrite_data_files(table => '{operator.table}', options => map('rewrite-all', 'true'))"
    ).collect()
    operator.run("erase", "--where", "partition = 0 and offset = 20", "--yes", says="1 row in")
    operator.run("expire", "--before", "10", "--rows", says="20 rows retired")
    gone = places(0, 20, *range(10)) | places(1, *range(10))
    operator.check(gone)
    operator.run("verify", says="is as it was archived: 139 records proven")

    operator.heading("Postgres is lost")
    operator.lose_registry(with_journal=True)
    operator.run("registry", "rebuild", says="(from the journal)")
    operator.run("verify", says="is as it was archived: 139 records proven")
    operator.run("refill", says="no row is missing")
    operator.check(gone)

    operator.heading("DuckDB rewrites the table, then Postgres and the journal are lost")
    duckdb.rewrite()
    operator.lose_registry(with_journal=False)
    operator.run("registry", "rebuild", says="only the table's rows show these offsets. They are kept")
    operator.run("verify", exit_code=1, says="unaccounted")
    operator.run("refill", says="no row is missing")
    operator.run("erase", "--where", "partition = 1 and offset = 30", "--yes", says="1 row in")
    operator.run("expire", "--before", "25", "--rows", says="rows retired")
    gone |= places(1, 30, *range(25)) | places(0, *range(25))
    operator.check(gone)
    operator.run("verify", says="is as it was archived")
    assert operator.wrong == [], "\n".join(operator.wrong)
