"""`python -m tests.fault.soak`: plays numbered rounds of faults; exit code 1 where anything was lost or doubled."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from archiver.local import LocalStack
from tests.fault.soak.deck import kinds
from tests.fault.soak.results import Results
from tests.fault.soak.run import soak, stack_in
from tests.support.kafka.brokers import Brokers


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fault.soak", description=__doc__)
    parser.add_argument("--faults", type=int, help="rounds in all, those that are kept included (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="which rounds these are")
    parser.add_argument("--out", type=Path, default=Path("build/faults.json"), help="where results are kept")
    parser.add_argument("--resume", action="store_true", help="go on where the file's results end")
    parser.add_argument("--minutes", type=float, help="end after about so long")
    parser.add_argument(
        "--stack", type=Path, help="a folder for servers of its own, left running (default: a fresh one)"
    )
    parser.add_argument("--only", action="append", metavar="KIND", help="rounds of this fault, and of no other")
    parser.add_argument("--each", action="store_true", help="kinds in turn: by default one round of each")
    given = parser.parse_args(arguments)
    if given.each:
        given.faults = given.faults or len(kinds())
    results = Results.open(given.out, seed=given.seed, resume=given.resume)
    if len(results.rounds) < (given.faults or 200):
        _play(results, given)
    sys.stdout.write(f"{results.table()}\n{results.totals()}\n")
    return 1 if results.totals()["wrong"] else 0


def _play(results: Results, given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="soak-") as scratch:
        folder = given.stack or Path(scratch) / "stack"
        try:
            stack = stack_in(folder, Path(scratch))
            soak(
                stack,
                Brokers(folder, stack),
                results,
                rounds=given.faults or 200,
                minutes=given.minutes,
                allowed=lambda fault: given.only is None or type(fault).__name__ in given.only,
                kinds=kinds() if given.each else (),
                say=lambda line: print(line, flush=True),  # noqa: T201 - a command's own output
            )
        finally:
            if given.stack is None:
                LocalStack(folder).down()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
