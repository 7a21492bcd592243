"""Fetches jars by PySpark's Ivy. Safe between processes."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from archiver.cache_folder import cache_folder
from archiver.errors import LocalStackError
from archiver.local.java import Java
from archiver.local.part import Say
from archiver.local.process import environment, tail

IVY_SETTINGS = "ARCHIVER_IVY_SETTINGS"
"""The environment variable that names an ivysettings.xml, for machines that reach Maven Central through a mirror."""

_ATTEMPTS = 3
_INTERRUPTED = (130, -signal.SIGINT, 143, -signal.SIGTERM)
_MANIFEST = "complete.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    organisation: str
    name: str
    revision: str
    transitive: bool = True


def jars(name: str, artifacts: tuple[Artifact, ...], java: Java, say: Say) -> Path:
    """Raises LocalStackError with the end of Ivy's output."""
    digest = hashlib.sha256(repr(artifacts).encode()).hexdigest()[:8]
    folder = cache_folder() / f"{name}-{digest}"
    if _complete(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(f"{folder.name}.lock"), say):
        if not _complete(folder):
            say(f"fetching {name} from Maven Central, once")
            _fetch(folder, artifacts, java)
    return folder


def _complete(folder: Path) -> bool:
    try:
        names = (folder / _MANIFEST).read_text(encoding="utf-8").split()
    except OSError:
        return False
    return all((folder / name).exists() for name in names)


@contextmanager
def _locked(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that fetches the same jars")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path, artifacts: tuple[Artifact, ...], java: Java) -> None:
    fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    # Kept until the set is complete: the next attempt continues a broken download.
    downloads = folder.with_name(f"{folder.name}.ivy")
    try:
        ivy_file = fresh / "ivy.xml"
        ivy_file.write_bytes(_ivy_module(artifacts))
        log = folder.with_name(f"{folder.name}.log")
        command = ivy_command(java, ivy_file, cache=downloads, target=f"{fresh}/[artifact]-[revision].[ext]")
        if not _run_ivy(command, log):
            raise LocalStackError(
                f"Maven Central did not give what {folder.name} needs; check the network, or name an ivysettings.xml "
                f"for your mirror in {IVY_SETTINGS}\n{tail(log, lines=12)}",
                log=str(log),
            )
        names = sorted(path.name for path in fresh.glob("*.jar"))
        (fresh / _MANIFEST).write_text("\n".join(names), encoding="utf-8")
        fresh.chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
        shutil.rmtree(downloads, ignore_errors=True)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _run_ivy(command: list[str], log: Path) -> bool:
    for attempt in range(1, _ATTEMPTS + 1):
        with log.open("wb") as output:
            done = subprocess.run(  # noqa: S603
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment({}), check=False
            )
        if done.returncode == 0:
            return True
        if done.returncode in _INTERRUPTED:
            return False
        if attempt < _ATTEMPTS:
            time.sleep(2**attempt)
    return False


def ivy_command(
    java: Java, module: Path, *, cache: Path, target: str, kinds: tuple[str, ...] = ("jar", "bundle")
) -> list[str]:
    settings = os.environ.get(IVY_SETTINGS)
    return [
        java.executable,
        # Ivy waits for answers most of the time. Optimising it takes more CPU than it saves.
        *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *("-jar", str(_ivy_jar())),
        *(("-settings", settings) if settings else ()),
        *("-cache", str(cache)),
        *("-ivy", str(module)),
        *("-confs", "default"),
        *("-types", *kinds),
        *("-retrieve", target),
    ]


def _ivy_module(artifacts: tuple[Artifact, ...]) -> bytes:
    root = ET.Element("ivy-module", version="2.0")
    ET.SubElement(root, "info", organisation="archiver", module="local")
    ET.SubElement(ET.SubElement(root, "configurations"), "conf", name="default")
    dependencies = ET.SubElement(root, "dependencies")
    for artifact in artifacts:
        ET.SubElement(
            dependencies,
            "dependency",
            org=artifact.organisation,
            name=artifact.name,
            rev=artifact.revision,
            conf="default->default",
            transitive=str(artifact.transitive).lower(),
        )
    return ET.tostring(root)


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        jar_files = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
        if jar_files:
            return jar_files[-1]
    raise LocalStackError("PySpark, whose Ivy fetches Kafka's jars, is not installed: pip install 'pyspark>=4.1,<4.2'")
