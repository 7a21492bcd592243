"""Programs from Maven Central, cached."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree as ET

from archiver.cache_folder import cache_folder
from archiver.local.java import find_java
from archiver.local.maven import ivy_command
from tests.support.timing.eventually import comes_true, eventually

TIMEOUT_S = 1_800.0
_LOOK_S = 0.2
_MAVEN = "http://ant.apache.org/ivy/maven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    organisation: str
    name: str
    revision: str
    with_needs: bool = False
    classifier: str | None = None
    kind: str = "jar"


def fetched(name: str, fetch: Callable[[Path], None]) -> Path:
    """Calls `fetch` once, also among processes."""
    folder = cache_folder() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{name}.lock").open("w") as lock:
        _wait_for(lock, name)
        if not folder.exists():
            fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{name}."))
            try:
                fetch(fresh)
                fresh.chmod(0o755)
                fresh.rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _wait_for(lock: TextIO, name: str) -> None:
    def is_locked() -> bool:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True

    what = f"{lock.name}, which another process holds: it should have fetched {name} by now"
    eventually(is_locked, what, seconds=TIMEOUT_S, every=_LOOK_S, despite=(BlockingIOError,))


def retrieve(
    dependencies: Sequence[Dependency], folder: Path, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Ivy takes one artifact of a module per run. `progress` gets bytes."""
    with tempfile.TemporaryDirectory() as scratch:
        module, log = Path(scratch) / "ivy.xml", Path(scratch) / "log"
        module.write_bytes(_module(dependencies))
        command = ivy_command(
            find_java(),
            module,
            cache=Path(scratch) / "cache",
            target=f"{folder}/[artifact]-[revision](-[classifier]).[ext]",
            kinds=("jar", "bundle", *(dependency.kind for dependency in dependencies)),
        )
        with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as ivy:

            def is_over() -> bool:
                progress(_size(Path(scratch) / "cache"))
                return ivy.poll() is not None

            comes_true(is_over, TIMEOUT_S, every=_LOOK_S)
            ivy.kill()
        assert ivy.returncode == 0, log.read_text(errors="replace")[-2000:]


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # Ivy renames what is complete
            total += path.stat().st_size
    return total


def _module(dependencies: Sequence[Dependency]) -> bytes:
    ET.register_namespace("m", _MAVEN)
    root = ET.Element("ivy-module", version="2.0")
    ET.SubElement(root, "info", organisation="archiver", module="tests")
    ET.SubElement(ET.SubElement(root, "configurations"), "conf", name="default")
    listed = ET.SubElement(root, "dependencies")
    for dependency in dependencies:
        conf = "default->default" if dependency.with_needs else "default->master"
        element = ET.SubElement(
            listed, "dependency", org=dependency.organisation, name=dependency.name, rev=dependency.revision, conf=conf
        )
        if dependency.classifier is not None or dependency.kind != "jar":
            artifact = {"name": dependency.name, "type": dependency.kind, "ext": dependency.kind}
            if dependency.classifier is not None:
                artifact[f"{{{_MAVEN}}}classifier"] = dependency.classifier
            ET.SubElement(element, "artifact", artifact)
    return ET.tostring(root)
