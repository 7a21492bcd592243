"""Forks Python workers with imported modules, in place of `pyspark.daemon`."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from zipimport import zipimporter

from archiver.engine.worker_memory import keep_memory
from archiver.light_start import quick_imports, spare_pandas

PRELOADED: Final = "ARCHIVER_PRELOADED"
"""The environment variable with the modules of a session's tasks, separated by commas."""
HEAPS: Final = "ARCHIVER_HEAPS"
"""The environment variable with the number of heaps that the threads of a worker share."""


def preload(modules: Iterable[str]) -> None:
    """A failing import is skipped: the task's import raises the error."""
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)


def forget_archives() -> None:
    """Spark would read zip importers' directories for each task."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def main() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    keep_memory(int(os.environ.get(HEAPS, "1")))
    with quick_imports():
        spare_pandas()
        from pyspark.daemon import manager

        preload(filter(None, os.environ.get(PRELOADED, "").split(",")))
    gc.freeze()  # collections in the workers then skip these objects and don't copy their pages
    forget_archives()
    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
