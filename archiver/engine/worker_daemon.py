"""The process that Spark's Python workers are forked from: what they need is imported once, before the first fork.

Spark runs it in place of `pyspark.daemon` where the session's settings say so. Workers come and go with tasks (Spark
ends one that was idle for a minute), and importing takes as long as archiving some 200,000 records.
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

PRELOADED: Final = "ARCHIVER_PRELOADED"
"""The environment variable that names the modules of a session's tasks, separated by commas."""


def preload(modules: Iterable[str]) -> None:
    """Import what tasks will ask for; a module that can't be imported is left for the task to complain about."""
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # nobody's garbage any more: collections in the workers don't walk it, nor copy its pages


def forget_archives() -> None:
    """Drop what is remembered of zip files on the path: for each task, Spark has every entry read its file again.

    PySpark itself comes in one; its directory took a tenth of a second to read as often as there are packages in it.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def main() -> None:
    """Prepare, then fork workers until Spark closes our standard input."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    keep_memory()
    from pyspark.daemon import manager

    preload(filter(None, os.environ.get(PRELOADED, "").split(",")))
    forget_archives()
    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
