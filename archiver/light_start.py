"""Imports that take no longer than they must, for commands that do little.

`quick_imports` keeps the garbage collector away from them: modules are made of many objects that stay, and each
collection goes through those that are there already.

`spare_pandas` keeps pandas out. pyarrow imports it as soon as it makes an array from Python values, to ask whether they
are a pandas Series. If the import fails, pyarrow goes on without pandas.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import with no collection in between. What was imported then counts as old, as after many collections."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # both at once move all objects to the oldest generation, without going through them
        gc.enable()


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pyarrow is to do without pandas here", name=fullname)


def spare_pandas() -> None:
    """Let pyarrow find that there is no pandas. Others can import it afterwards, and `to_pandas` still works."""
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
