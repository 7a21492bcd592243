"""The releases of what the embedded stack fetches from elsewhere than PyPI."""

from __future__ import annotations

from typing import Final

KAFKA: Final = "4.3.1"
