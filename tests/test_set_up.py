"""`make setup` after interruptions."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLAYED = r"""#!/usr/bin/env bash
echo "$(basename "$0") $*" >>calls
case "$*" in
  "-m venv "*) for venv; do :; done
    case "$*" in *--clear*) rm -rf "$venv" ;; esac
    mkdir -p "$venv/bin" "$venv/lib/python3/site-packages/pip-1.dist-info"
    echo "pip-1.dist-info/INSTALLER,," >"$venv/lib/python3/site-packages/pip-1.dist-info/RECORD"
    cp "$0" "$venv/bin/python"; cp "$0" "$venv/bin/uv" ;;
  *" -c "*fcntl*) exec REAL "$@" ;;
  *"-c "*) echo "${FAKE_TAG:-python-1}" ;;
  *"pip --version") [ ! -e .venv/no-pip ] ;;
  *"-e .") sleep "${FAKE_COMPILE_S:-0}"; [ -z "${FAKE_NO_COMPILE:-}" ] || exit 1
    for each in archiver/*.pyx; do touch "${each%.pyx}.fake.so"; done ;;
  *" install "*) [ -z "${FAKE_NO_INSTALL:-}" ] ;;
esac
""".replace("REAL", sys.executable)


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("scripts", "requirements", "schema_mapping", "archiver"):
            (root / folder).mkdir()
        for name in ("setup", "wheels.cfg"):
            shutil.copy(ROOT / "scripts" / name, root / "scripts" / name)
        self.write("scripts/java-home", "#!/bin/sh\n").chmod(0o755)
        self.write("python", PLAYED).chmod(0o755)
        for name in ("setup", "build", "fetch", "run", "test", "compiler"):
            self.write(f"requirements/{name}.txt", "")
        for name in ("pyproject.toml", "setup.py", "archiver/one.pyx", "archiver/two.pyx"):
            self.write(name, name)

    def write(self, path: str, text: str) -> Path:
        (self.root / path).write_text(text)
        return self.root / path

    def set_up(self, **played: str) -> tuple[int, list[str]]:
        calls = self.write("calls", "")
        environment = {**os.environ, "PYTHON": str(self.root / "python"), "CC": "cc", **played}
        done = subprocess.run(["scripts/setup"], cwd=self.root, env=environment, capture_output=True, check=False)
        installed = [line.split()[-1] for line in calls.read_text().splitlines() if " install " in line]
        return done.returncode, [Path(path).stem or "kernels" for path in installed]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    code, installed = made.set_up()
    assert code == 0
    assert {"kernels", "setup", "build", "fetch", "test"} <= set(installed)
    return made


def test_nothing_is_done_twice(tree: Tree) -> None:
    assert tree.set_up() == (0, [])


def test_kernels_are_compiled_again_after_a_failure(tree: Tree) -> None:
    tree.write("archiver/one.pyx", "another")
    translated = tree.write("archiver/one.c", "cut o")
    assert tree.set_up(FAKE_NO_COMPILE="1")[0] == 1
    tree.write("archiver/one.pyx", "archiver/one.pyx")
    code, installed = tree.set_up()
    assert (code, "kernels" in installed) == (0, True)
    assert not translated.exists()
    assert tree.set_up() == (0, [])


def test_requirements_are_installed_again_after_a_failure(tree: Tree) -> None:
    tree.write("requirements/run.txt", "another")
    assert tree.set_up(FAKE_NO_INSTALL="1")[0] == 1
    tree.write("requirements/run.txt", "")
    code, installed = tree.set_up()
    assert (code, "test" in installed) == (0, True)
    assert tree.set_up() == (0, [])


def test_a_kernel_with_another_name_is_compiled(tree: Tree) -> None:
    (tree.root / "archiver/two.pyx").rename(tree.root / "archiver/uno.pyx")
    assert "kernels" in tree.set_up()[1]


def test_kernels_that_are_gone_are_compiled(tree: Tree) -> None:
    (tree.root / "archiver/two.fake.so").unlink()
    assert "kernels" in tree.set_up()[1]


def test_another_python_gets_everything(tree: Tree) -> None:
    assert {"kernels", "test"} <= set(tree.set_up(FAKE_TAG="python-2")[1])


@pytest.mark.parametrize("lost", ["no-pip", "lib/python3/site-packages/pip-1.dist-info/RECORD"])
def test_an_environment_that_was_made_by_half_is_made_anew(tree: Tree, lost: str) -> None:
    for name in (".build", ".requirements"):
        (tree.root / ".venv" / name).unlink()
    tree.write(f".venv/{lost}", "")
    made_before = tree.write(".venv/made-before", "")
    assert tree.set_up()[0] == 0
    assert not made_before.exists()


def test_two_at_once_do_it_once(tree: Tree) -> None:
    tree.write("archiver/one.pyx", "another")
    first = threading.Thread(target=tree.set_up, kwargs={"FAKE_COMPILE_S": "1"})
    first.start()
    environment = {**os.environ, "PYTHON": str(tree.root / "python"), "CC": "cc"}
    while "-e ." not in (tree.root / "calls").read_text():
        assert first.is_alive()
    subprocess.run(["scripts/setup"], cwd=tree.root, env=environment, capture_output=True, check=True)
    first.join()
    assert (tree.root / "calls").read_text().count("-e .") == 1


def package(site: Path, name: str, *, installer: bool = True) -> Path:
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    files = {f"{name}.py": "x = 1\n", f"{folder.name}/METADATA": "Name: x\n"}
    files |= {f"{folder.name}/INSTALLER": "uv\n"} if installer else {}
    for path, text in files.items():
        (site / path).write_text(text)
    with (folder / "RECORD").open("w", newline="") as record:
        rows = [(path, "sha256=x", len(text)) for path, text in files.items()]
        csv.writer(record).writerows([*rows, (f"{name}.pyc", "", ""), (f"{folder.name}/RECORD", "", "")])
    return folder


def environment(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    for name in (".build", ".requirements"):
        (folder / name).write_text("")
    (site,) = folder.glob("lib/python*/site-packages")
    return site


def drop_half_installed(folder: Path, *options: str) -> None:
    program = ROOT / "scripts" / "drop_half_installed.py"
    subprocess.run([folder / "bin/python", program, *options], check=True)


def test_packages_whose_installation_was_cut_off_are_dropped(tmp_path: Path) -> None:
    site = environment(tmp_path / "venv")
    whole, pip = package(site, "whole"), package(site, "pip", installer=False)
    gone, short, unrecorded, unfinished = (
        package(site, name, installer=name != "unfinished") for name in ("gone", "short", "unrecorded", "unfinished")
    )
    (site / "gone.py").unlink()
    (site / "short.py").write_text("x")
    (unrecorded / "RECORD").unlink()
    outside = tmp_path / "outside"
    outside.write_text("")
    with (gone / "RECORD").open("a") as record:
        record.write(f"{outside},,\n")
    drop_half_installed(tmp_path / "venv")
    assert [file.exists() for file in (whole, pip, gone, short, unrecorded, unfinished)] == [True] * 2 + [False] * 4
    assert sorted(path.name for path in site.glob("*.py")) == ["pip.py", "unrecorded.py", "whole.py"]
    assert outside.exists()
    assert [(tmp_path / "venv" / file).exists() for file in (".build", ".requirements")] == [True, False]


def test_own_package_is_kept_if_it_may_be_installed_soon(tmp_path: Path) -> None:
    site = environment(tmp_path / "venv")
    ours = package(site, "kafka_iceberg_archiver", installer=False)
    drop_half_installed(tmp_path / "venv", "--others")
    assert ours.exists()
    drop_half_installed(tmp_path / "venv")
    assert not ours.exists()
    assert [(tmp_path / "venv" / name).exists() for name in (".build", ".requirements")] == [False, True]
