"""The process from which Spark forks its Python workers. It imports their modules once, before the first fork.

Spark runs it in place of `pyspark.daemon` if the session's settings say so. Workers come and go with tasks (Spark ends
an idle worker after a minute), and the imports take as long as archiving about 200,000 records.
"""

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
"""The environment variable that names the modules of a session's tasks, separated by commas."""
HEAPS: Final = "ARCHIVER_HEAPS"
"""The environment variable that says how many heaps the threads of a worker share."""


def preload(modules: Iterable[str]) -> None:
    """Import the modules of the tasks. A module that fails is skipped: the task's own import then raises the error."""
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)


def forget_archives() -> None:
    """Drop Python's cached importers of zip files on the path.

    For each task, Spark has all of them read their files again. PySpark itself comes in a zip file. To read its
    directory once for each of its packages took a tenth of a second.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def main() -> None:
    """Import the modules, then fork workers until Spark closes our standard input."""
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
