"""`python -m tests.chaos`: plays numbered histories; exit code 1 where one broke what the archiver promises."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import psycopg

from archiver.local import LocalStack
from tests.chaos.run import HistoryResults, chaos
from tests.support.servers.stack import Stack


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--histories", type=int, default=50, help="histories in all, those that are kept included")
    parser.add_argument("--acts", type=int, default=30, help="acts of a history")
    parser.add_argument("--seed", type=int, default=1, help="which histories these are")
    parser.add_argument("--out", type=Path, default=Path("build/chaos.json"), help="where results are kept")
    parser.add_argument("--resume", action="store_true", help="go on where the file's results end")
    parser.add_argument("--only", type=int, action="append", metavar="NUMBER", help="play this history, and no other")
    parser.add_argument("--shrink", type=float, default=0.0, metavar="SECONDS", help="look for shorter histories")
    parser.add_argument("--spark", action="store_true", help="commands are processes on Spark, really killed")
    parser.add_argument("--stack", type=Path, help="a folder for servers, left running (default: a fresh one)")
    given = parser.parse_args(arguments)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    results = HistoryResults.open(given.out, seed=given.seed, resume=given.resume)
    with tempfile.TemporaryDirectory(prefix="chaos-") as scratch:
        folder = given.stack or Path(scratch) / "stack"
        try:
            stack = Stack(LocalStack(folder).up(), Path(scratch))
            _without_flushes(stack)
            spark: AbstractContextManager[Callable[[str], Any] | None] = _sql(stack) if given.spark else nullcontext()
            with spark as sql:
                chaos(
                    stack,
                    results,
                    histories=given.histories,
                    acts=given.acts,
                    numbers=given.only,
                    shrink_seconds=given.shrink,
                    say=lambda line: print(line, flush=True),  # noqa: T201 - a command's own output
                    sql=sql,
                )
        finally:
            if given.stack is None:
                LocalStack(folder).down()
    sys.stdout.write(f"{results.table()}\n{results.totals()}\n")
    return 1 if results.totals()["wrong"] else 0


def _without_flushes(stack: Stack) -> None:
    with psycopg.connect(stack.postgres_dsn, autocommit=True) as connection:
        connection.execute("alter system set synchronous_commit = off")
        connection.execute("select pg_reload_conf()")


@contextmanager
def _sql(stack: Stack) -> Iterator[Callable[[str], Any]]:
    from archiver.demo.settings import sql_options
    from archiver.engine.spark import SparkEngine
    from archiver.local.fetch import fetch_iceberg

    options = sql_options(stack.endpoints, fetch_iceberg(lambda _: None))
    with SparkEngine.start({"master": "local[2]", **options}) as engine:
        yield lambda statement: engine.session.sql(statement).collect()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
