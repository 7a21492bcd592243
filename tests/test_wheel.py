"""The wheel runs without a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KERNELS = [
    path.relative_to(ROOT) for package in ("archiver", "schema_mapping") for path in (ROOT / package).rglob("*.pyx")
]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel() -> Path:
    subprocess.run([ROOT / "scripts" / "wheel"], check=True, capture_output=True, text=True)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = (ROOT / "dist").glob(f"kafka_iceberg_archiver-{VERSION}-{tag}-*.whl")
    return max(wheels, key=lambda path: path.stat().st_mtime)


def test_it_has_every_kernel_and_what_they_are_told_by(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert KERNELS
    assert {str(kernel.with_suffix(suffix)) for kernel in KERNELS} <= names
    packaged = {str(path.relative_to(ROOT)) for path in (ROOT / "catalog").rglob("*.sql")}
    assert packaged
    assert packaged <= names
    assert not [name for name in names if name.startswith("tests/") or name.endswith(".c")]


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel knows Linux alone")
def test_it_says_which_linux_it_runs_on(wheel: Path) -> None:
    assert "manylinux" in wheel.name


def test_it_runs_where_there_is_no_compiler(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    binaries = tmp_path / "venv" / "bin"
    pips = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    bare = {"PATH": str(binaries), "HOME": str(tmp_path), **pips}
    pip = [binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for arguments in (["--require-hashes", "-r", ROOT / "requirements" / "image.txt"], ["--no-deps", wheel]):
        subprocess.run([*pip, *arguments], check=True, env=bare, cwd=tmp_path)
    subprocess.run([binaries / "python", "-m", "pip", "check"], check=True, env=bare, cwd=tmp_path)
    output = run([binaries / "archiver", "--version"], bare, tmp_path)
    assert VERSION in output
    assert "archive" in run([binaries / "archiver", "--help"], bare, tmp_path)
    modules = [".".join(kernel.with_suffix("").parts) for kernel in KERNELS]
    code = f"import importlib; [print(importlib.import_module(name).__file__) for name in {modules!r}]"
    files = run([binaries / "python", "-c", code], bare, tmp_path).splitlines()
    assert len(files) == len(KERNELS)
    assert all(Path(file).is_relative_to(tmp_path) for file in files)


def run(command: list[Path | str], environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
