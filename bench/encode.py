"""Speed of encoding columns to Protobuf values, compared with ptars (Rust), protarrow and upb.

Recipe: `python bench/encode.py [--megabytes 4] [--rounds 11] [--shape NAME] [--json FILE]`. The reverse of
bench/decode.py: each side starts from its columns, upb from its objects. A note says if a peer's values differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from values.contest import contest
from values.peers import Bench

if __name__ == "__main__":
    contest("Encode", Bench.encoders)
