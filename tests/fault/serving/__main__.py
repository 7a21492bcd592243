"""`python -m tests.fault.serving`: slow consumers, killed nodes and rebalances; exit code 1 where anything was wrong.

`make serve-soak` plays all three for a minute each. Counts go to a file, a section for each part.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from archiver.local import LocalStack
from tests.fault.serving.killed_nodes import killed_nodes
from tests.fault.serving.member import PROTOCOLS
from tests.fault.serving.rebalances import rebalances
from tests.fault.serving.slow_consumers import slow_consumers
from tests.support.servers.stack import Stack

PARTS = ("slow", "nodes", "rebalances")


def played(part: str, stack: Stack, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    folder.mkdir(parents=True)
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{part} {time.monotonic() - began:5.0f} s: {line}", flush=True)  # noqa: T201 - a command's own output

    match part:
        case "slow":
            return slow_consumers(stack, folder, minutes=given.minutes, slow=given.slow, idle=given.idle, say=say)
        case "nodes":
            return killed_nodes(stack, folder, minutes=given.minutes, every=given.every, seed=given.seed, say=say)
        case _:
            return rebalances(
                stack,
                folder,
                minutes=given.minutes,
                rounds=given.rounds,
                members=given.members,
                groups=given.groups,
                protocols=given.protocols,
                seed=given.seed,
                say=say,
            )


def kept(path: Path, part: str, found: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    content[part] = found
    path.write_text(json.dumps({name: content[name] for name in PARTS if name in content}, indent=2) + "\n", "utf-8")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fault.serving", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", default=PARTS, help=f"one of {', '.join(PARTS)}")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long each part takes, about")
    parser.add_argument("--slow", type=int, default=200, help="slow consumers")
    parser.add_argument("--idle", type=int, default=1000, help="idle connections")
    parser.add_argument("--every", type=float, default=20.0, help="seconds from one killed node to the next")
    parser.add_argument("--rounds", type=int, default=1000, help="changes of groups, as far as there is time")
    parser.add_argument("--members", type=int, default=20, help="members of a group")
    parser.add_argument("--groups", type=int, default=2, help="groups at once")
    parser.add_argument("--protocols", nargs="+", choices=list(PROTOCOLS), default=list(PROTOCOLS), help="of groups")
    parser.add_argument("--seed", type=int, default=1, help="which changes and kills these are")
    parser.add_argument("--out", type=Path, default=Path("build/serve-soak.json"), help="where counts are kept")
    parser.add_argument("--keep", type=Path, help="a folder for what members and servers noted")
    parser.add_argument("--stack", type=Path, help="the folder of a running stack (default: one of its own)")
    given = parser.parse_args(arguments)
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="serve-soak-") as scratch:
        folder = given.keep or Path(scratch)
        local = LocalStack(given.stack or Path(scratch) / "stack")
        try:
            stack = Stack(local.up(), Path(scratch))
            for part in given.parts:
                result = played(part, stack, folder / part, given)
                kept(given.out, part, result)
                wrong += result["wrong"]
                sys.stdout.write(json.dumps({part: result}) + "\n")
        finally:
            if given.stack is None:
                local.down()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
