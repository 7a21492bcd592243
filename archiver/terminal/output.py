"""JSON lines or a screen."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, Protocol, Self, TypeVar

from archiver.observer import Observer
from archiver.terminal.json_lines import JsonLines, Line

E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True)


class Screen(Protocol[E_contra]):
    def lines(self, event: E_contra, /) -> Iterable[Line]: ...

    def __enter__(self) -> Observer[E_contra]: ...

    def __exit__(self, *_: object) -> None: ...


class Output(Generic[E]):
    """`failed`: an event could not be shown. The command ends with an error, though its work is done."""

    def __init__(self, screen: Screen[E], *, as_json: bool) -> None:
        self._opened: AbstractContextManager[Observer[E]] = nullcontext(JsonLines(screen.lines)) if as_json else screen
        self._show: Observer[E] | None = None
        self.failed = False

    def __enter__(self) -> Self:
        self._show = self._opened.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.__exit__(None, None, None)

    def __call__(self, event: E) -> None:
        """Raises the error that prevents showing the event."""
        assert self._show is not None
        try:
            self._show(event)
        except Exception:
            self.failed = True
            raise
