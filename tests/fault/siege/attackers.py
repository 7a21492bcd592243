"""A siege's hostile clients, in one process.

Usage: `python -m tests.fault.siege.attackers PORT ATTACKS CONNECTIONS SEED`, with a file of pickled attacks. It prints
"attacking" at the start. Connections change attacks every few seconds. When standard input ends, it prints counts of
sent attacks as JSON.
"""

from __future__ import annotations

import json
import pickle
import selectors
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.fault.siege.attacks import rounds
from tests.support.servers.hostile import Attack, Attacker

ROUND_S = 5.0
ADDRESS = "127.0.0.2"


def main() -> None:
    port, path, connections, seed = sys.argv[1:]
    kinds: Mapping[str, Attack] = pickle.loads(Path(path).read_bytes())
    sent: Counter[str] = Counter()
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    attackers = [Attacker(int(port), ADDRESS, selector, sent) for _ in range(int(connections))]
    drawn, change = rounds(tuple(kinds), len(attackers), int(seed)), 0.0
    print("attacking", flush=True)  # noqa: T201 - for the siege
    while True:
        now = time.monotonic()
        if now >= change:
            change = now + ROUND_S
            for attacker, name in zip(attackers, next(drawn), strict=True):
                attacker.begin(kinds[name])
        for attacker in attackers:
            attacker.resume(now)
        for key, events in selector.select(0.01):
            if key.data is None:
                print(json.dumps(sent))  # noqa: T201 - for the siege
                return
            key.data.act(events)


if __name__ == "__main__":
    main()
