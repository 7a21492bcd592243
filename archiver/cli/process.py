"""The start and exit of the process."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from archiver.light_start import quick_imports

_COMPLETION = "_ARCHIVER_COMPLETE"
_NO_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"


def main() -> None:
    """Run the command line and exit."""
    leaving = Leaving()
    os.environ.setdefault(_NO_PLUGINS, "1")  # pydantic would look for them in every installed package
    with quick_imports():
        from archiver.cli.command_line import command_line
        from archiver.cli.error_output import exit_code, print_error
        from schema_mapping.errors import ContextError

        app = command_line(named(sys.argv[1:]))
    try:
        app()
    except SystemExit as done:
        leaving.ends_with(done.code)
        raise
    except ContextError as error:
        print_error(error, as_json=False)
        leaving.ends_with(exit_code(error))
        sys.exit(exit_code(error))


def named(arguments: Sequence[str]) -> Sequence[str]:
    """All commands if the first argument is none."""
    from archiver.cli.command_line import NAMES

    if _COMPLETION in os.environ:
        return NAMES
    match arguments:
        case [name, *_] if name in NAMES:
            return (name,)
        case ["--version", *_]:
            return ()
    return NAMES


class Leaving:
    """Exits without finalizing modules, which takes longer than importing them.

    After an unexpected error, or if output can't be written, the process exits as usual.
    """

    def __init__(self) -> None:
        self._code: int | None = None
        # Handlers are called from the last one to the first one. If others were there before (a profiler, an
        # instrumentation), they would never be called.
        if not getattr(atexit, "_ncallbacks", lambda: 0)():
            atexit.register(self._leave)

    def ends_with(self, code: object) -> None:
        if code is None or isinstance(code, int):
            self._code = code or 0

    def _leave(self) -> None:
        if self._code is None:
            return
        with suppress(OSError, ValueError):  # Python tries again, and then says so by its message and exit code
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            os._exit(self._code & 0xFF)
