from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.archiver.replay.lake import Lake


@pytest.fixture
def lake(tmp_path: Path, archive: Any) -> Lake:
    """An empty table of raw keys and values."""
    return Lake(tmp_path / "lake", archive.rows)
