"""Private folders, opened once and used by descriptor, so that they can't be swapped."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from archiver.errors import ConfigError, StorageError

KEY: Final = "archive.spool"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_folder(path: Path) -> int:
    """Makes missing parents, too. Raises as `open_folder`."""
    try:
        for missing in reversed([folder for folder in (path, *path.parents) if not folder.exists()]):
            with suppress(FileExistsError):  # another task made it, or it is a broken link
                missing.mkdir(mode=stat.S_IRWXU)
    except OSError as error:
        raise _unusable(error, path) from error
    return open_folder(path)


def open_folder(path: Path) -> int:
    """Open the folder and remove other users' rights.

    Raises ConfigError for a link or another user's folder, else StorageError.
    """
    try:
        if path.is_symlink():
            raise ConfigError(
                "The spool is a symbolic link, which others may turn elsewhere: name the folder that it leads to",
                key=KEY,
                folder=str(path),
                leads_to=str(path.resolve()),
            )
        folder = os.open(path, _FLAGS)
    except OSError as error:
        raise _unusable(error, path) from error
    try:
        _claim(folder, path)
    except BaseException:
        os.close(folder)
        raise
    return folder


def open_below(folder: int, name: str) -> int:
    """Open a folder in a private one. Raises OSError if it is a link, missing or another user's."""
    below = os.open(name, _FLAGS, dir_fd=folder)
    if os.fstat(below).st_uid != os.geteuid():
        os.close(below)
        raise PermissionError(f"{name} belongs to another user")
    return below


def make_below(folder: int, name: str) -> int:
    """Raises as `open_below`."""
    with suppress(FileExistsError):
        os.mkdir(name, stat.S_IRWXU, dir_fd=folder)
    return open_below(folder, name)


def _claim(folder: int, path: Path) -> None:
    status = os.fstat(folder)
    if status.st_uid != os.geteuid():
        raise ConfigError(
            "The spool belongs to another user, who could read or swap what waits in it: name a folder of this user's, "
            "or one that isn't there yet in a folder that this user may write to",
            key=KEY,
            folder=str(path),
            owner=status.st_uid,
            user=os.geteuid(),
        )
    if not status.st_mode & _OTHERS:
        return
    with suppress(OSError):
        os.fchmod(folder, stat.S_IRWXU)
    if os.fstat(folder).st_mode & _OTHERS:
        raise ConfigError(
            "The spool is open to other users, and its filesystem keeps no rights: name a folder on another",
            key=KEY,
            folder=str(path),
            mode=f"{stat.S_IMODE(status.st_mode):o}",
        )


def _unusable(error: OSError, path: Path) -> StorageError:
    return StorageError(
        f"The spool can't be used: {error}; set [archive] spool to a folder that this user may write to",
        folder=str(path),
    )
