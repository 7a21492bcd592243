"""The checks in docs/audit.md."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.audit.export import export
from tests.support.archive.audit_trails import Written, acts

PAGE = Path(__file__).parents[3] / "docs" / "audit.md"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documented")
    written = Written.begin(folder / "made")
    written.add(*acts(12))
    written.sign()
    written.add(*acts(3)[2:])
    export(written.folder, folder / "evidence")
    script = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert script is not None
    (folder / "check.py").write_text(script[1])
    shutil.copy(folder / "made" / "key.pem.pub", folder / "key.pub")
    return folder


def run(folder: Path, evidence: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "check.py"), str(evidence), str(folder / "key.pub")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_script_of_the_page_reads_a_trail_as_we_do(exported: Path) -> None:
    done = run(exported, exported / "evidence")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("13 entries, last hash ")


@pytest.mark.parametrize(
    ("pattern", "before", "after"),
    [
        ("entries-*", b'"principal":"ops', b'"principal":"oops'),
        ("entries-*", b'"seq":4', b'"seq":14'),
        ("checkpoint-*", b'"entries":12', b'"entries":11'),
    ],
)
def test_the_script_of_the_page_finds_changes(
    exported: Path, tmp_path: Path, pattern: str, before: bytes, after: bytes
) -> None:
    shutil.copytree(exported / "evidence", tmp_path / "evidence")
    (path,) = (tmp_path / "evidence").glob(pattern)
    path.write_bytes(path.read_bytes().replace(before, after, 1))
    assert run(exported, tmp_path / "evidence").returncode == 1


def test_openssl_verifies_a_checkpoint_alone(exported: Path, tmp_path: Path) -> None:
    if shutil.which("openssl") is None or shutil.which("jq") is None:
        pytest.skip("openssl or jq isn't there")
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (commands,) = [block for block in blocks if "pkeyutl" in block]
    (checkpoint,) = (exported / "evidence").glob("checkpoint-*")
    shutil.copy(checkpoint, tmp_path / "checkpoint.json")
    shutil.copy(exported / "key.pub", tmp_path / "audit.pem.pub")
    done = subprocess.run(["bash", "-ec", commands], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
