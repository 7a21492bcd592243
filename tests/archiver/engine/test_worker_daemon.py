from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from zipimport import zipimporter

import pytest

from archiver.engine.worker_daemon import forget_archives, preload


def test_modules_are_imported_and_missing_ones_left_to_the_tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "wanted_by_tasks.py").write_text("THERE = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("gc.freeze", lambda: None)
    preload(("no_such_module_anywhere", "wanted_by_tasks"))
    assert sys.modules.pop("wanted_by_tasks").THERE


def test_dropped_archive_caches_still_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("first_of_archive.py", "PLACE = 1\n")
        packed.writestr("second_of_archive.py", "PLACE = 2\n")
    monkeypatch.syspath_prepend(str(archive))
    __import__("first_of_archive")
    assert isinstance(sys.path_importer_cache[str(archive)], zipimporter)
    forget_archives()
    assert str(archive) not in sys.path_importer_cache
    assert __import__("second_of_archive").PLACE == 2
    for name in ("first_of_archive", "second_of_archive"):
        del sys.modules[name]
