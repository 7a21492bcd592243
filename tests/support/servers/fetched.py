"""Other people's programs, fetched from Maven Central once and kept in the cache of the embedded stack."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from archiver.local.java import find_java
from archiver.local.maven import cache_root, ivy_command

TIMEOUT_S = 900.0
_MAVEN = "http://ant.apache.org/ivy/maven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One artifact of a module, alone or with all that it needs."""

    organisation: str
    name: str
    revision: str
    with_needs: bool = False
    classifier: str | None = None
    kind: str = "jar"


def fetched(name: str, fetch: Callable[[Path], None]) -> Path:
    """The folder of this name, filled by `fetch` if there is none; processes wait for the one that fetches."""
    folder = cache_root() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{name}."))
            try:
                fetch(fresh)
                fresh.chmod(0o755)
                fresh.rename(folder)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return folder


def retrieve(dependencies: Sequence[Dependency], folder: Path) -> None:
    """Put the files of these dependencies into the folder. Ivy gives one artifact of a module in a run."""
    with tempfile.TemporaryDirectory() as scratch:
        module, log = Path(scratch) / "ivy.xml", Path(scratch) / "log"
        module.write_bytes(_module(dependencies))
        command = ivy_command(
            find_java(),
            module,
            cache=Path(scratch) / "cache",
            target=f"{folder}/[artifact]-[revision](-[classifier]).[ext]",
            kinds=("jar", "bundle", *(each.kind for each in dependencies)),
        )
        with log.open("wb") as output:
            done = subprocess.run(command, stdout=output, stderr=output, check=False, timeout=TIMEOUT_S)
        assert done.returncode == 0, log.read_text(errors="replace")[-2000:]


def _module(dependencies: Sequence[Dependency]) -> bytes:
    ET.register_namespace("m", _MAVEN)
    root = ET.Element("ivy-module", version="2.0")
    ET.SubElement(root, "info", organisation="archiver", module="tests")
    ET.SubElement(ET.SubElement(root, "configurations"), "conf", name="default")
    listed = ET.SubElement(root, "dependencies")
    for each in dependencies:
        conf = "default->default" if each.with_needs else "default->master"
        element = ET.SubElement(
            listed, "dependency", org=each.organisation, name=each.name, rev=each.revision, conf=conf
        )
        if each.classifier is not None:
            artifact = {
                "name": each.name,
                "type": each.kind,
                "ext": each.kind,
                f"{{{_MAVEN}}}classifier": each.classifier,
            }
            ET.SubElement(element, "artifact", artifact)
    return ET.tostring(root)
