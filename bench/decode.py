"""Speed of decoding Protobuf to columns, compared with ptars (Rust), protarrow, pybufarrow (Go) and upb.

Recipe: `python bench/decode.py [--megabytes 4] [--rounds 11] [--shape NAME] [--json FILE]`, with
bench/values/shapes.py. Median MB of values for a core's second. protarrow's time includes upb's, which makes objects.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from values.contest import contest
from values.peers import Bench

if __name__ == "__main__":
    contest("Decode", Bench.decoders)
