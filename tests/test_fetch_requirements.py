"""`make setup` fetches jars once `requirements/fetch.txt` is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

BLOCK = """
import sys

class Missing:
    names = frozenset(sys.argv.pop(1).split(","))

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
FETCH = "import runpy; sys.argv[1:] = ['local', 'fetch', '--help']; runpy.run_module('archiver', run_name='__main__')"
IMPORTS = "import archiver.local.fetch"


def pinned(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


def modules_without(kept: dict[str, str]) -> set[str]:
    ours = {"kafka-iceberg-archiver"}
    return {
        module
        for module, names in packages_distributions().items()
        if module.isidentifier() and not {re.sub(r"[-_.]+", "-", name).lower() for name in names} & (kept.keys() | ours)
    }


@pytest.mark.parametrize("program", [FETCH, IMPORTS])
def test_what_fetches_jars_needs_only_its_own_requirements(program: str) -> None:
    missing = modules_without(pinned("fetch"))
    assert {"pyarrow", "pyiceberg", "numpy"} <= missing
    command = [sys.executable, "-c", BLOCK + program, ",".join(sorted(missing))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_they_are_those_of_the_rest() -> None:
    every = pinned("run") | pinned("test")
    assert {name: every[name] for name in pinned("fetch")} == pinned("fetch")
