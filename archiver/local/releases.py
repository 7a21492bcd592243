"""Versions of programs from outside PyPI."""

from __future__ import annotations

from typing import Final

KAFKA: Final = "4.3.1"
