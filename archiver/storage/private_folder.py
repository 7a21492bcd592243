"""Folders that belong to this user alone: made so, and what others could have laid in the way is refused.

A folder is opened once and used by its descriptor from then on. Whoever may rename the folders above it can put
another in its place, but not reach what is written here, nor have something else read.
"""

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
    """Open the spool's folder, made with all above it where it isn't there. Raises what `open_folder` does."""
    try:
        for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):
            with suppress(FileExistsError):  # another task was faster, or it is a link to nowhere
                missing.mkdir(mode=stat.S_IRWXU)
    except OSError as error:
        raise _unusable(error, path) from error
    return open_folder(path)


def open_folder(path: Path) -> int:
    """Open the spool's folder, and take the rights of others on it away.

    Raises ConfigError where it is a link, is another user's or stays open to others, StorageError where it can't be
    used for another reason.
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
    """Open a folder in one that is ours. Raises OSError where it is a link, isn't there, or is another user's."""
    below = os.open(name, _FLAGS, dir_fd=folder)
    if os.fstat(below).st_uid != os.geteuid():
        os.close(below)
        raise PermissionError(f"{name} belongs to another user")
    return below


def make_below(folder: int, name: str) -> int:
    """Open a folder in one that is ours, made where it isn't there."""
    with suppress(FileExistsError):
        os.mkdir(name, stat.S_IRWXU, dir_fd=folder)
    return open_below(folder, name)


def _claim(folder: int, path: Path) -> None:
    """Refuse a folder of another user; one of ours that others may look into is closed to them."""
    found = os.fstat(folder)
    if found.st_uid != os.geteuid():
        raise ConfigError(
            "The spool belongs to another user, who could read or swap what waits in it: name a folder of this user's, "
            "or one that isn't there yet in a folder that this user may write to",
            key=KEY,
            folder=str(path),
            owner=found.st_uid,
            user=os.geteuid(),
        )
    if not found.st_mode & _OTHERS:
        return
    with suppress(OSError):
        os.fchmod(folder, stat.S_IRWXU)
    if os.fstat(folder).st_mode & _OTHERS:
        raise ConfigError(
            "The spool is open to other users, and its filesystem keeps no rights: name a folder on another",
            key=KEY,
            folder=str(path),
            mode=f"{stat.S_IMODE(found.st_mode):o}",
        )


def _unusable(error: OSError, path: Path) -> StorageError:
    return StorageError(
        f"The spool can't be used: {error}; set [archive] spool to a folder that this user may write to",
        folder=str(path),
    )
