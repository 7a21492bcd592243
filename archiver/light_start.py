"""Imports that take no longer than they must, for commands that do little.

`late_names` lets a package have names of modules that are imported when one of their names is first used.

`quick_imports` keeps the garbage collector away from them: modules are made of many objects that stay, and each
collection goes through those that are there already.

`spare_pandas` keeps pandas out. pyarrow imports it as soon as it makes an array from Python values, to ask whether they
are a pandas Series. If the import fails, pyarrow goes on without pandas. `without_pandas` does the same for
commands that may need no pyarrow.

`with_roomy_stack` gives Python one large piece of memory for the frames of all calls, instead of many small ones.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import FunctionType
from typing import Any, Final

_FRAME_WORDS: Final = 17_000
"""More than 128 KiB: Python takes 256 KiB for such a frame, and the rest of them is for the frames of calls in it."""


def late_names(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """A package's `__getattr__`. `homes` are modules, each with its names that the package has too.

    None of them may be called like a module of the package: importing that module would take its place.
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
    """Import with no collection in between. What was imported then counts as old, as after many collections.

    With `for_good` collections pass over it from then on, and over all else that there is: for a process that goes on.
    """
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


@contextmanager
def without_pandas() -> Iterator[None]:
    """Let nothing import pandas inside the block. For commands that need no pyarrow, unless they find something."""
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def with_roomy_stack(call: Callable[[], None]) -> None:
    """Call it where frames of deep calls lie in one piece of memory.

    Python takes memory for frames 16 KiB at a time, and gives a piece back when the first call in it returns. If calls
    go back and forth over the end of a piece, as deep imports do, each asks the system for memory. The frame of a code
    object that says it needs a large stack makes Python take a large piece. What isn't used of it costs nothing.
    """
    FunctionType(_call.__code__.replace(co_stacksize=_FRAME_WORDS), globals())(call)


def _call(call: Callable[[], None]) -> None:
    call()
