"""Exported names exist, and are imported at first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import schema_mapping


@pytest.mark.parametrize("name", schema_mapping.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(schema_mapping, name) is not None


def test_no_other_name_is() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Maping'"):
        _ = schema_mapping.Maping


@pytest.mark.parametrize("module", ["schema_mapping.errors", "catalog.errors", "archiver.errors"])
def test_errors_need_no_library(module: str) -> None:
    script = f"import sys, {module}; sys.exit(not sys.modules.keys().isdisjoint({{'pyarrow', 'pyiceberg', 'numpy'}}))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
