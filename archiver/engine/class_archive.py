"""A class data sharing archive, which saves a third of the CPU time of the Spark driver's start.

https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html: Java 17 writes it, Java 19 keeps it current.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from archiver.cache_folder import cache_folder

FOLDER: Final = "java-classes"
_KEEPS_ITSELF: Final = 19
"""The first version of Java that writes and renews the archive by itself."""

_MAGIC: Final = bytes.fromhex("a8ab0bf0")
"""The first bytes of a complete archive. Java 17 writes them last."""

_SETTLED_SECONDS: Final = 30
_CLAIMED_SECONDS: Final = 600
"""How long one process alone may write the archive: it takes many CPU seconds."""

_WRITING: Final = ".writing"
_UNUSED_SECONDS: Final = 30 * 24 * 3600
"""An archive that no start used for this long is removed. It takes about 140 MB."""

_QUIET: Final = (
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
    "-Xlog:cds*=off:stderr",
    "-Xlog:class+path*=off:stderr",
)
"""Java logs classes that it leaves out of an archive, and archives that it can't use. A person can act on neither. An
option without an output is for standard output alone.
"""

_SEEN: Final = ".seen"
_OWN_CHOICE: Final = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit", "-Xlog")


def class_archive_options(java: Path, version: int, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Options to use or write the archive; none if `settings` choose one.

    The first start writes nothing, for containers' sake.
    """
    if _chooses(settings):
        return ()
    try:
        return _options(_archive_of(java), version)
    except OSError:  # a read-only home, as in many containers
        return ()


def _archive_of(java: Path) -> Path:
    folder = cache_folder() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    _remove_unused(folder)
    return folder / f"{_key(java)}.jsa"


def _chooses(settings: Mapping[str, str]) -> bool:
    given = settings.get("spark.driver.extraJavaOptions", "")
    return any(option in given for option in _OWN_CHOICE) or "spark.driver.extraClassPath" in settings


def _using(archive: Path) -> tuple[str, ...]:
    return (f"-XX:SharedArchiveFile={archive}", *_QUIET)


def _options(archive: Path, version: int) -> tuple[str, ...]:
    first = _is_first(archive)
    if version >= _KEEPS_ITSELF:
        return ("-XX:+AutoCreateSharedArchive", *_using(archive))
    _take_over(archive)
    if archive.exists():
        return _using(archive)
    if first:
        return ()
    claim = archive.with_suffix(".claim")
    with suppress(FileNotFoundError):
        if _age(claim) > _CLAIMED_SECONDS:
            claim.unlink()
    try:
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return ()
    return (f"-XX:ArchiveClassesAtExit={archive.with_suffix(f'.{os.getpid()}{_WRITING}')}", *_QUIET)


def _is_first(archive: Path) -> bool:
    seen = archive.with_suffix(_SEEN)
    first = not seen.exists()
    seen.touch()
    return first


def _take_over(archive: Path) -> None:
    for writing in archive.parent.glob(f"{archive.stem}.*{_WRITING}"):
        with suppress(FileNotFoundError):
            if _age(writing) > _SETTLED_SECONDS:
                if _begins_well(writing):
                    writing.rename(archive)
                else:
                    writing.unlink()


def _remove_unused(folder: Path) -> None:
    for seen in folder.glob(f"*{_SEEN}"):
        with suppress(FileNotFoundError):
            if _age(seen) > _UNUSED_SECONDS:
                for part in folder.glob(f"{seen.stem}.*"):
                    part.unlink()


def _age(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def _begins_well(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _key(java: Path) -> str:
    real = java.resolve()
    jars = [jar for folder in spark_folders() for jar in sorted(Path(folder, "jars").glob("*.jar"))]
    stamps = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in (real, *jars)]
    return hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]


def spark_folders() -> tuple[str, ...]:
    """Doesn't import PySpark. Empty if it isn't installed."""
    spec = find_spec("pyspark")
    return () if spec is None else tuple(spec.submodule_search_locations or ())
