"""A server loads modules ahead for the first values."""

from __future__ import annotations

import subprocess
import sys

PLAY = """
import sys
from schema_mapping.formats import load_formats
load_formats()
needed = {f"schema_mapping.protobuf.{each}" for each in ("format", "encode", "program", "kernel.encoder")}
sys.exit(", ".join(needed - sys.modules.keys()) or 0)
"""


def test_the_formats_and_their_kernel() -> None:
    done = subprocess.run([sys.executable, "-c", PLAY], check=False, capture_output=True, text=True)
    assert done.stderr.strip() == ""
    assert done.returncode == 0
