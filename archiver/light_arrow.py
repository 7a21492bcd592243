"""pyarrow for commands that need no pandas.

pyarrow imports pandas as soon as it makes an array from Python values, to ask whether they are a pandas Series. That
takes a third of the time that a short command needs to start. If the import fails, pyarrow goes on without pandas.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


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
