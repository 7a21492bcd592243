"""The output of a long command, event by event: JSON lines for machines or a screen for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, Protocol, Self, TypeVar

from archiver.observer import Observer
from archiver.terminal.json_lines import JsonLines, Line

E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True)


class Screen(Protocol[E_contra]):
    """Shows events to people while its context is open."""

    def __enter__(self) -> Observer[E_contra]: ...

    def __exit__(self, *_: object) -> None: ...


class Output(Generic[E]):
    """The observer of a command: `lines_of` for machines, `screen` for people. Use as a context manager.

    `failed` means that an event could not be shown. Then the command ends with an error, though its work is done.
    """

    def __init__(
        self, *, as_json: bool, lines_of: Callable[[E], Iterable[Line]], screen: Callable[[], Screen[E]]
    ) -> None:
        self._opened: AbstractContextManager[Observer[E]] = nullcontext(JsonLines(lines_of)) if as_json else screen()
        self._show: Observer[E] | None = None
        self.failed = False

    def __enter__(self) -> Self:
        self._show = self._opened.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.__exit__(None, None, None)

    def __call__(self, event: E) -> None:
        """Show an event. Raises what prevents that."""
        assert self._show is not None
        try:
            self._show(event)
        except Exception:
            self.failed = True
            raise
