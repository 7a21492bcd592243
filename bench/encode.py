"""Speed of encoding columns to Protobuf, compared with ptars (Rust), protarrow and upb.

As bench/decode.py, from each side's columns (upb: objects). A note says if values differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from values.contest import contest
from values.peers import Bench

if __name__ == "__main__":
    contest("Encode", Bench.encoders)
