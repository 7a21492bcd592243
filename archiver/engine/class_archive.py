"""An archive of the classes that Spark's driver loads. A JVM maps it instead of reading and checking each class again.

It saves more than a third of the CPU time that a session takes to start. Java 17 writes one when a JVM ends
(`-XX:ArchiveClassesAtExit`), Java 19 and later keep one up to date (`-XX:+AutoCreateSharedArchive`). A JVM that can't
use an archive starts without it: https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html.
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
"""How a complete archive begins. Java 17 writes it last."""

_SETTLED_SECONDS: Final = 30
_CLAIMED_SECONDS: Final = 600
"""How long one process alone may write the archive: it takes many CPU seconds."""

_WRITING: Final = ".writing"
_UNUSED_SECONDS: Final = 30 * 24 * 3600
"""How long an archive stays that no start asked for. It takes about 140 MB."""

_QUIET: Final = (
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
    "-Xlog:cds*=off:stderr",
    "-Xlog:class+path*=off:stderr",
)
"""Java tells which classes it leaves out of an archive, and which archive it can't use. A person can act on neither.

An option without an output is for standard output alone.
"""

_SEEN: Final = ".seen"
_OWN_CHOICE: Final = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit", "-Xlog")


def class_archive_options(java: Path, version: int, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Java's options that use the archive, or write it as the JVM ends. None where `settings` choose for themselves.

    Nothing is written on the first start: in a folder that goes with its container, each start would write for nothing.
    """
    if _chooses(settings):
        return ()
    try:
        return _options(_archive_of(java), version)
    except OSError:  # a read-only home, as in many containers
        return ()


def ready_archive_options(java: Path, settings: Mapping[str, str]) -> tuple[str, ...] | None:
    """Java's options for a JVM that may have nothing to do: they use a complete archive and never write one.

    None if there is none yet, and this is not the first start: then the JVM of a session is to write it.
    """
    if _chooses(settings):
        return ()
    try:
        archive = _archive_of(java)
        _take_over(archive)
        first = _is_first(archive)
        is_whole = archive.exists() and _begins_well(archive)
    except OSError:
        return ()
    if is_whole:
        return _using(archive)
    return () if first else None


def _archive_of(java: Path) -> Path:
    """Where this Java's archive is, or will be. Its folder is made, and rid of archives that nobody asks for."""
    folder = cache_folder() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    _remove_unused(folder)
    return folder / f"{_key(java)}.jsa"


def _chooses(settings: Mapping[str, str]) -> bool:
    given = settings.get("spark.driver.extraJavaOptions", "")
    return any(each in given for each in _OWN_CHOICE) or "spark.driver.extraClassPath" in settings


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
    """Whether nobody asked for this archive before. It counts as asked for from now on."""
    seen = archive.with_suffix(_SEEN)
    first = not seen.exists()
    seen.touch()
    return first


def _take_over(archive: Path) -> None:
    """Give an archive that a JVM wrote its name, and remove what a killed JVM left."""
    for writing in archive.parent.glob(f"{archive.stem}.*{_WRITING}"):
        with suppress(FileNotFoundError):
            if _age(writing) > _SETTLED_SECONDS:
                if _begins_well(writing):
                    writing.rename(archive)
                else:
                    writing.unlink()


def _remove_unused(folder: Path) -> None:
    """Remove the archives that no start asked for in a month: of an older Spark, or of an environment that is gone."""
    for seen in folder.glob(f"*{_SEEN}"):
        with suppress(FileNotFoundError):
            if _age(seen) > _UNUSED_SECONDS:
                for each in folder.glob(f"{seen.stem}.*"):
                    each.unlink()


def _age(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def _begins_well(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _key(java: Path) -> str:
    """What an archive depends on: this Java, and each jar of Spark's class path, whose size and time Java compares."""
    real = java.resolve()
    jars = [jar for folder in spark_folders() for jar in sorted(Path(folder, "jars").glob("*.jar"))]
    stamps = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in (real, *jars)]
    return hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]


def spark_folders() -> tuple[str, ...]:
    """Where PySpark is, found without importing it. Empty where it isn't installed."""
    found = find_spec("pyspark")
    return () if found is None else tuple(found.submodule_search_locations or ())
