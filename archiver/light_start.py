"""Shortens the start of small commands."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import Any


def late_names(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, for imports at first use.

    No name may be a module of the package: importing the module would replace it.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def name_of(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return name_of


@contextmanager
def quick_imports(*, for_good: bool = False) -> Iterator[None]:
    """With `for_good` later collections skip all existing objects."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if not for_good:
            gc.unfreeze()  # both at once move all objects to the oldest generation, without going through them
        gc.enable()


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pyarrow works without pandas here", name=fullname)


def spare_pandas() -> None:
    """Keep pyarrow from importing pandas. Later imports, and `to_pandas`, still work."""
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


@contextmanager
def without_pandas() -> Iterator[None]:
    """For commands that rarely need pyarrow."""
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
