"""`D/stack.json` (mode 0600)."""

from __future__ import annotations

import base64
import json
import os
import secrets
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from archiver.errors import LocalStackError
from archiver.local.process import ProcessMark

FILE_NAME = "stack.json"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    """Secrets and ids are made once; ports change only if one is taken."""

    cluster_id: str
    postgres_password: str = field(repr=False)
    access_key: str
    secret_key: str = field(repr=False)
    ports: Mapping[str, int] = field(default_factory=dict)
    processes: Mapping[str, ProcessMark] = field(default_factory=dict)
    config_digest: str = ""
    """SHA-256 of `archiver.toml` as last written. A file with another digest was edited."""
    brokers: int = 1
    """The number of Kafka nodes, chosen when the stack is made."""

    def with_process(self, name: str, mark: ProcessMark | None) -> StackState:
        processes = {part: process for part, process in self.processes.items() if part != name}
        return replace(self, processes=processes if mark is None else {**processes, name: mark})

    def with_ports(self, ports: Mapping[str, int]) -> StackState:
        return replace(self, ports={**self.ports, **ports})


class StateFile:
    """Written on every change. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._current = load(directory) or draw()

    @property
    def current(self) -> StackState:
        return self._current

    def change(self, change: Callable[[StackState], StackState]) -> StackState:
        with self._lock:
            changed = change(self._current)
            save(self._directory, changed)
            self._current = changed
            return changed


def draw() -> StackState:
    return StackState(
        cluster_id=_cluster_id(),
        postgres_password=secrets.token_urlsafe(24),
        access_key=f"AK{secrets.token_hex(9).upper()}",
        secret_key=secrets.token_hex(20),
    )


def load(directory: Path) -> StackState | None:
    """None if there is no stack. Raises LocalStackError."""
    path = directory / FILE_NAME
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if document.pop("version") != _VERSION:
            raise LocalStackError("this stack was made by another version; use another folder", file=str(path))
        processes = {name: ProcessMark(**mark) for name, mark in document.pop("processes").items()}
        return StackState(**document, processes=processes)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LocalStackError(f"cannot be read: {error.strerror}; whose stack is it?", file=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LocalStackError(f"cannot be read ({error}); restore it, or use another folder", file=str(path)) from error


def save(directory: Path, state: StackState) -> None:
    document = {"version": _VERSION, **asdict(state)}
    write_private(directory / FILE_NAME, json.dumps(document, indent=2) + "\n")


def write_private(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _cluster_id() -> str:
    # Kafka's tools would take a leading dash as an option.
    while (drawn := base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return drawn
