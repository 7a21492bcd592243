"""`python -m tests.fault.mutants`: puts each mended hole back, and demands that a round of faults or a test turns red.

Exit code 1 where a hole goes unseen, or where the code as it is is red.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from archiver.local import LocalStack
from archiver.local.kafka import CLUSTER
from tests.fault.mutants.bench import Bench
from tests.fault.mutants.mutant import mutants
from tests.fault.mutants.outcomes import Outcomes


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fault.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these, by the names of their patches")
    parser.add_argument("--out", type=Path, default=Path("build/mutants.json"), help="where results are kept")
    parser.add_argument("--stack", type=Path, help="a folder for the servers, left running (default: a fresh one)")
    given = parser.parse_args(arguments)
    selected = [mutant for mutant in mutants() if not given.names or mutant.name in given.names]
    outcomes = Outcomes.open(given.out)
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        folder = given.stack or Path(scratch) / "stack"
        try:
            if any(chosen.needs_servers for chosen in selected):
                LocalStack(folder).up(brokers=CLUSTER)
            bench = Bench(Path(scratch), folder)
            for chosen in selected:
                outcomes.add(bench.outcome(chosen))
                sys.stdout.write(f"{outcomes.line(chosen.name)}\n")
                sys.stdout.flush()
        finally:
            if given.stack is None:
                LocalStack(folder).down()
    sys.stdout.write(f"\n{outcomes.table()}\n")
    return 0 if all(outcomes.is_seen(chosen.name) for chosen in selected) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
