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
from pathlib import Path
from typing import Final

import pyspark

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
_QUIET: Final = ("-Xlog:disable", "-Xlog:all=warning:stderr", "-Xlog:cds*=off", "-Xlog:class+path*=off")
"""Java tells on standard output which classes it leaves out of an archive, and that is the output of our command."""

_OWN_CHOICE: Final = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit", "-Xlog")


def class_archive_options(java: Path, version: int, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Java's options that use the archive, or write it as the JVM ends. None where `settings` choose for themselves.

    Nothing is written on the first start: in a folder that goes with its container, each start would write for nothing.
    """
    given = settings.get("spark.driver.extraJavaOptions", "")
    if any(each in given for each in _OWN_CHOICE) or "spark.driver.extraClassPath" in settings:
        return ()
    try:
        folder = cache_folder() / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        return _options(folder / f"{_key(java)}.jsa", version)
    except OSError:  # a read-only home, as in many containers
        return ()


def _options(archive: Path, version: int) -> tuple[str, ...]:
    use = (f"-XX:SharedArchiveFile={archive}", *_QUIET)
    if version >= _KEEPS_ITSELF:
        return ("-XX:+AutoCreateSharedArchive", *use)
    _take_over(archive)
    if archive.exists():
        return use
    seen, claim = archive.with_suffix(".seen"), archive.with_suffix(".claim")
    if not seen.exists():
        seen.touch()
        return ()
    with suppress(FileNotFoundError):
        if _age(claim) > _CLAIMED_SECONDS:
            claim.unlink()
    try:
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return ()
    return (f"-XX:ArchiveClassesAtExit={archive.with_suffix(f'.{os.getpid()}{_WRITING}')}", *_QUIET)


def _take_over(archive: Path) -> None:
    """Give an archive that a JVM wrote its name, and remove what a killed JVM left."""
    for writing in archive.parent.glob(f"{archive.stem}.*{_WRITING}"):
        with suppress(FileNotFoundError):
            if _age(writing) > _SETTLED_SECONDS:
                if _begins_well(writing):
                    writing.rename(archive)
                else:
                    writing.unlink()


def _age(path: Path) -> float:
    return time.time() - path.stat().st_mtime


def _begins_well(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _key(java: Path) -> str:
    """What an archive depends on: this Java, and Spark's class path."""
    real = java.resolve()
    parts = (str(real), str(real.stat().st_mtime_ns), pyspark.__version__, *map(str, pyspark.__path__))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
