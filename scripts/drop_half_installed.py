"""Removes packages whose installation was interrupted: pip and uv call them installed.

Both write the INSTALLER last in a package's file list. `scripts/setup` runs this first, so it uses only the standard
library.
"""

from __future__ import annotations

import csv
import shutil
import sys
import sysconfig
from pathlib import Path

PACKAGES = {Path(sysconfig.get_path(scheme)).resolve() for scheme in ("purelib", "platlib")}
ENVIRONMENT = Path(sys.prefix).resolve()
OURS = "kafka_iceberg_archiver-"


def listed(folder: Path) -> list[tuple[Path, int]]:
    """Return the files and their minimal sizes, without files compiled on demand."""
    record = folder / "RECORD"
    if not record.is_file():
        return []
    with record.open(encoding="utf-8", errors="replace", newline="") as lines:
        rows = [(row[0], row[2] if len(row) > 2 else "") for row in csv.reader(lines) if row]  # noqa: PLR2004
    return [
        (folder.parent / path, int(size) if size.isdigit() else 0) for path, size in rows if not path.endswith(".pyc")
    ]


def is_whole(folder: Path, files: list[tuple[Path, int]]) -> bool:
    if folder / "INSTALLER" not in {path for path, _ in files}:
        return False
    return all(path.exists() and path.stat().st_size >= size for path, size in files)


def drop(folder: Path, files: list[tuple[Path, int]]) -> None:
    """Remove the list last, so that an interrupted removal finds the package again."""
    (ENVIRONMENT / (".build" if folder.name.startswith(OURS) else ".requirements")).unlink(missing_ok=True)
    for path, _ in files:
        if path.parent != folder and path.parent.resolve().is_relative_to(ENVIRONMENT):
            path.unlink(missing_ok=True)
    shutil.rmtree(folder)


def main() -> None:
    left = ("pip-", OURS) if "--others" in sys.argv else ("pip-",)
    for folder in sorted(folder for packages in PACKAGES for folder in packages.glob("*.dist-info")):
        files = listed(folder)
        if not folder.name.startswith(left) and not is_whole(folder, files):
            print(f"setup: {folder.name.removesuffix('.dist-info')} was installed by half; it will be again")  # noqa: T201
            drop(folder, files)


if __name__ == "__main__":
    main()
