"""The speed at which Protobuf values become columns, beside ptars (Rust), protarrow, pybufarrow (Go) and upb.

Recipe: `python bench/decode.py [--megabytes 4] [--rounds 11] [--shape NAME] [--json FILE]`. Five shapes of messages
and two single loops (bench/values/shapes.py). The sides take turns at the same values in one process; the median of
the rounds counts, in MB of values for a second of one core's time. Ours tracks in the same pass whether every byte can
come back. protarrow starts from upb's objects, so its time holds upb's; upb makes objects and no columns.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from values.contest import contest
from values.peers import Bench

if __name__ == "__main__":
    contest("Decode", Bench.decoders)
